"""What is noted of an attempt, and the job that enqueued another: columns that are NULL, no row is rewritten.

The function that inserts a job knows of the parent now; the one before it stays for code that still runs.
"""

import django.db.models.deletion
from django.db import migrations, models

from django_pgqueue import sql


class Migration(migrations.Migration):
    dependencies = [("django_pgqueue", "0008_enqueue_function")]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="sql_queries",
            field=models.IntegerField(blank=True, null=True, verbose_name="SQL queries"),
        ),
        migrations.AddField(
            model_name="attempt",
            name="sql_seconds",
            field=models.FloatField(blank=True, null=True, verbose_name="SQL seconds"),
        ),
        migrations.AddField(
            model_name="job",
            name="parent",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="children",
                to="django_pgqueue.job",
                verbose_name="enqueued by job",
            ),
        ),
        migrations.RunSQL(sql.MAKE_ENQUEUE_FUNCTION, sql.DROP_ENQUEUE_FUNCTION),
    ]
