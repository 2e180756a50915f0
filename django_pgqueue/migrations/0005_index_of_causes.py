"""The index of dead jobs by cause, made while the queue works."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    """Can be repeated: what a broken run left behind is dropped first."""

    atomic = False
    dependencies = [("django_pgqueue", "0004_bulk_operations_and_causes")]

    operations = [
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS pgqueue_state_cause", migrations.RunSQL.noop),
        AddIndexConcurrently(
            "jobstate",
            models.Index(
                F("cause"), F("finished_at"), F("job"), name="pgqueue_state_cause", condition=Q(status="dead")
            ),
        ),
    ]
