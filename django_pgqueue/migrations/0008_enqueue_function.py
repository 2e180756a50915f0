"""The function that inserts one job."""

from django.db import migrations

from django_pgqueue import sql


class Migration(migrations.Migration):
    dependencies = [("django_pgqueue", "0007_causes_of_the_dead")]

    operations = [migrations.RunSQL(sql.MAKE_ENQUEUE_FUNCTION_1, sql.DROP_ENQUEUE_FUNCTION_1)]
