"""Rollups, samples, pauses, the registry of workers; and which transaction recorded an attempt.

On a live table: new tables; a column that is NULL in the rows there are, and has a default for those to come.
"""

from django.db import migrations, models

import django_pgqueue.fields

# Set apart from the column: with it, PostgreSQL would compute a value for each row and write the table anew.
RECORDED_XID = migrations.RunSQL(
    """
    ALTER TABLE django_pgqueue_attempt
    ALTER COLUMN recorded_xid SET DEFAULT (pg_current_xact_id()::text::bigint)
    """,
    "ALTER TABLE django_pgqueue_attempt ALTER COLUMN recorded_xid DROP DEFAULT",
)


class Migration(migrations.Migration):
    dependencies = [("django_pgqueue", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Overview",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "verbose_name": "overview",
                "verbose_name_plural": "overview",
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="QueuePause",
            fields=[
                (
                    "queue",
                    models.CharField(max_length=128, primary_key=True, serialize=False, verbose_name="queue"),
                ),
                ("is_draining", models.BooleanField(verbose_name="draining")),
                ("since", models.DateTimeField(verbose_name="since")),
                ("by", models.CharField(max_length=255, verbose_name="by")),
                ("reason", models.TextField(verbose_name="reason")),
            ],
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
                "permissions": [("pause_queue", "Can pause, drain and resume queues")],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="QueueSample",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "taken_at", "queue", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("taken_at", models.DateTimeField(verbose_name="taken at")),
                ("queue", models.CharField(max_length=128, verbose_name="queue")),
                ("ready", models.BigIntegerField(verbose_name="ready")),
                ("running", models.BigIntegerField(verbose_name="running")),
                ("oldest", models.FloatField(null=True, verbose_name="oldest")),
            ],
            options={
                "verbose_name": "sample of a queue",
                "verbose_name_plural": "samples of queues",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Rollup",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "span",
                        "starts_at",
                        "queue",
                        "task_path",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("span", models.IntegerField(verbose_name="span")),
                ("starts_at", models.DateTimeField(verbose_name="starts at")),
                ("queue", models.CharField(max_length=128, verbose_name="queue")),
                ("task_path", models.CharField(max_length=255, verbose_name="task")),
                ("succeeded", models.BigIntegerField(verbose_name="succeeded")),
                ("failed", models.BigIntegerField(verbose_name="failed")),
                ("lost", models.BigIntegerField(verbose_name="lost")),
                ("snoozed", models.BigIntegerField(verbose_name="snoozed")),
                ("released", models.BigIntegerField(verbose_name="released")),
                ("cancelled", models.BigIntegerField(verbose_name="cancelled")),
                ("run_seconds", models.FloatField(verbose_name="seconds run")),
                ("runs", django_pgqueue.fields.CountsField(verbose_name="run times")),
                ("waits", django_pgqueue.fields.CountsField(verbose_name="waiting times")),
            ],
            options={
                "verbose_name": "rollup",
                "verbose_name_plural": "rollups",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="RollupMark",
            fields=[
                ("id", models.SmallIntegerField(primary_key=True, serialize=False, verbose_name="id")),
                ("next_xid", models.BigIntegerField(verbose_name="next transaction")),
                ("pending", django_pgqueue.fields.CountsField(verbose_name="transactions under way")),
                ("counted_from", models.DateTimeField(verbose_name="counted from")),
            ],
            options={
                "verbose_name": "mark of the rollups",
                "verbose_name_plural": "marks of the rollups",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                (
                    "worker_id",
                    models.CharField(
                        max_length=128, primary_key=True, serialize=False, verbose_name="worker"
                    ),
                ),
                ("host", models.CharField(max_length=255, verbose_name="host")),
                ("pid", models.IntegerField(verbose_name="process id")),
                ("started_at", models.DateTimeField(verbose_name="started at")),
                ("beat_at", models.DateTimeField(verbose_name="last beat")),
                ("heartbeat", models.FloatField(verbose_name="heartbeat")),
                ("queues", models.TextField(verbose_name="queues")),
                ("processes", models.IntegerField(verbose_name="processes")),
                ("threads", models.IntegerField(verbose_name="threads")),
                ("version", models.CharField(max_length=64, verbose_name="version")),
                ("release", models.CharField(max_length=128, verbose_name="release")),
                ("memory", models.IntegerField(null=True, verbose_name="memory")),
                ("is_stopping", models.BooleanField(verbose_name="stopping")),
                ("children", django_pgqueue.fields.JSONTextField(verbose_name="children")),
                ("stop_requested_at", models.DateTimeField(null=True, verbose_name="stop requested at")),
                ("stop_requested_by", models.CharField(max_length=255, verbose_name="stop requested by")),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "permissions": [("stop_worker", "Can ask workers to stop")],
                "default_permissions": (),
            },
        ),
        migrations.AddField(
            model_name="attempt",
            name="recorded_xid",
            field=models.BigIntegerField(editable=False, null=True, verbose_name="recorded by transaction"),
        ),
        RECORDED_XID,
    ]
