"""The index by which rollups find the attempts that they have not counted; made beside running workers.

It holds no rows that were there before the column, so on a table of any size it is made in one short read.
"""

from django.db import migrations, models

NAME = "pgqueue_attempt_recorded"
# A build that was broken off leaves an index that is not valid; the next run begins by removing it.
INDEX = migrations.RunSQL(
    [
        f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}",
        f"CREATE INDEX CONCURRENTLY {NAME} ON django_pgqueue_attempt (recorded_xid) "
        "WHERE recorded_xid IS NOT NULL",
    ],
    f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}",
    state_operations=[
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                models.F("recorded_xid"), condition=models.Q(("recorded_xid__isnull", False)), name=NAME
            ),
        )
    ],
)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("django_pgqueue", "0002_operating")]

    operations = [INDEX]
