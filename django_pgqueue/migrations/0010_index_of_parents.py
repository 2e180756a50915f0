"""The index by which the jobs that a job enqueued are found; it holds no row that was there before it."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    """Can be repeated: what a broken run left behind is dropped first."""

    atomic = False
    dependencies = [("django_pgqueue", "0009_notes_and_parents")]

    operations = [
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS pgqueue_job_parent", migrations.RunSQL.noop),
        AddIndexConcurrently(
            "job",
            models.Index(
                F("parent"), F("id"), name="pgqueue_job_parent", condition=Q(parent__isnull=False)
            ),
        ),
    ]
