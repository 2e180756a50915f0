"""The three tables, the sequence of positions, and the storage settings that the queue's speed rests on."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q

import django_pgqueue.fields

POSITION_SEQUENCE = migrations.RunSQL(
    "CREATE SEQUENCE IF NOT EXISTS django_pgqueue_position_seq AS bigint CACHE 1",
    "DROP SEQUENCE IF EXISTS django_pgqueue_position_seq",
)

# Fixed thresholds: a share of a large table would let vacuum wait for millions of dead rows.  vacuum_index_cleanup:
# with few dead rows among many, vacuum skips the indexes, and dead entries would stay at the head of the claim index.
STATE_STORAGE = migrations.RunSQL(
    """
    ALTER TABLE django_pgqueue_jobstate SET (
        fillfactor = 70, vacuum_index_cleanup = on,
        autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
        autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 1
    )
    """,
    migrations.RunSQL.noop,
)


class Migration(migrations.Migration):
    """Create everything; there is nothing to upgrade from."""

    initial = True
    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Job",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False, verbose_name="id")),
                ("backend", models.CharField(max_length=64, verbose_name="backend")),
                ("task_path", models.CharField(max_length=255, verbose_name="task")),
                ("args", django_pgqueue.fields.JSONTextField(verbose_name="arguments")),
                ("kwargs", django_pgqueue.fields.JSONTextField(verbose_name="keyword arguments")),
                ("queue", models.CharField(max_length=128, verbose_name="queue")),
                ("priority", models.SmallIntegerField(verbose_name="priority")),
                ("run_after", models.DateTimeField(blank=True, null=True, verbose_name="run after")),
                ("enqueued_at", models.DateTimeField(verbose_name="enqueued at")),
                ("metadata", django_pgqueue.fields.JSONTextField(verbose_name="metadata")),
                ("max_attempts", models.IntegerField(verbose_name="attempts allowed")),
                ("timeout", models.FloatField(blank=True, null=True, verbose_name="timeout")),
                ("backoff_base", models.FloatField(verbose_name="backoff base")),
                ("backoff_cap", models.FloatField(verbose_name="backoff cap")),
            ],
            options={
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
                "permissions": [
                    ("retry_job", "Can retry dead and cancelled jobs"),
                    ("cancel_job", "Can cancel jobs"),
                    ("run_job", "Can run scheduled jobs now"),
                ],
                "default_permissions": ("view",),
                "indexes": [models.Index(F("task_path"), F("id"), name="pgqueue_job_task")],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(("priority__gte", -100), ("priority__lte", 100)),
                        name="pgqueue_job_priority_in_range",
                    ),
                    models.CheckConstraint(
                        condition=Q(("max_attempts__gte", 1)), name="pgqueue_job_has_budget"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="JobState",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="state",
                        serialize=False,
                        to="django_pgqueue.job",
                        verbose_name="job",
                    ),
                ),
                ("queue", models.CharField(max_length=128, verbose_name="queue")),
                ("priority", models.SmallIntegerField(verbose_name="priority")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("scheduled", "Scheduled"),
                            ("ready", "Ready"),
                            ("running", "Running"),
                            ("succeeded", "Succeeded"),
                            ("dead", "Dead"),
                            ("cancelled", "Cancelled"),
                        ],
                        max_length=16,
                        verbose_name="status",
                    ),
                ),
                ("position", models.BigIntegerField(blank=True, null=True, verbose_name="position")),
                ("run_at", models.DateTimeField(verbose_name="due at")),
                ("attempts", models.IntegerField(verbose_name="attempts")),
                ("attempts_allowed", models.IntegerField(verbose_name="attempts allowed")),
                ("lease_version", models.BigIntegerField(verbose_name="lease version")),
                ("lease_token", models.UUIDField(blank=True, null=True, verbose_name="lease token")),
                ("worker_id", models.CharField(blank=True, max_length=128, null=True, verbose_name="worker")),
                ("claimed_at", models.DateTimeField(blank=True, null=True, verbose_name="claimed at")),
                (
                    "lease_expires_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="lease expires at"),
                ),
                ("finished_at", models.DateTimeField(blank=True, null=True, verbose_name="finished at")),
                (
                    "cancel_requested_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="cancel requested at"),
                ),
                (
                    "unique_key",
                    models.CharField(blank=True, max_length=255, null=True, verbose_name="unique key"),
                ),
                (
                    "progress",
                    django_pgqueue.fields.JSONTextField(blank=True, null=True, verbose_name="progress"),
                ),
            ],
            options={
                "verbose_name": "job state",
                "verbose_name_plural": "job states",
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        F("queue"),
                        F("priority") * -1,
                        F("position"),
                        F("job"),
                        name="pgqueue_state_claim",
                        condition=Q(("status", "ready")),
                    ),
                    models.Index(
                        F("run_at"),
                        F("job"),
                        name="pgqueue_state_promote",
                        condition=Q(("status", "scheduled")),
                    ),
                    models.Index(
                        F("claimed_at"),
                        F("job"),
                        name="pgqueue_state_rescue",
                        condition=Q(("status", "running")),
                    ),
                    models.Index(
                        F("status"),
                        F("finished_at"),
                        F("job"),
                        name="pgqueue_state_ended",
                        condition=Q(("finished_at__isnull", False)),
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(
                            (
                                "status__in",
                                ["scheduled", "ready", "running", "succeeded", "dead", "cancelled"],
                            )
                        ),
                        name="pgqueue_state_status_known",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(
                                ("status", "running"),
                                ("claimed_at__isnull", False),
                                ("lease_expires_at__isnull", False),
                                ("lease_token__isnull", False),
                                ("worker_id__isnull", False),
                            ),
                            Q(
                                Q(("status", "running"), _negated=True),
                                ("claimed_at__isnull", True),
                                ("lease_expires_at__isnull", True),
                                ("lease_token__isnull", True),
                                ("worker_id__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="pgqueue_state_running_has_owner",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(
                                ("finished_at__isnull", False),
                                ("status__in", ["cancelled", "dead", "succeeded"]),
                            ),
                            Q(
                                Q(("status__in", ["cancelled", "dead", "succeeded"]), _negated=True),
                                ("finished_at__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="pgqueue_state_ended_has_time",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("status", "ready"), _negated=True),
                            ("position__isnull", False),
                            _connector="OR",
                        ),
                        name="pgqueue_state_ready_has_position",
                    ),
                    models.CheckConstraint(
                        condition=Q(("priority__gte", -100), ("priority__lte", 100)),
                        name="pgqueue_state_priority_in_range",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            ("attempts__gte", 0),
                            ("lease_version__gte", 0),
                            ("attempts__lte", F("attempts_allowed")),
                        ),
                        name="pgqueue_state_attempts_within_allowed",
                    ),
                    models.UniqueConstraint(
                        condition=Q(
                            ("status__in", ["scheduled", "ready", "running"]), ("unique_key__isnull", False)
                        ),
                        fields=("unique_key",),
                        name="pgqueue_state_one_live_job_per_key",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "job_id", "number", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="attempts",
                        to="django_pgqueue.job",
                        verbose_name="job",
                    ),
                ),
                ("number", models.IntegerField(verbose_name="number")),
                ("lease_version", models.BigIntegerField(verbose_name="lease version")),
                ("lease_token", models.UUIDField(verbose_name="lease token")),
                ("worker_id", models.CharField(max_length=128, verbose_name="worker")),
                ("host", models.CharField(max_length=255, verbose_name="host")),
                ("pid", models.IntegerField(null=True, verbose_name="process id")),
                ("started_at", models.DateTimeField(verbose_name="started at")),
                ("finished_at", models.DateTimeField(verbose_name="finished at")),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("lost", "Lost"),
                            ("snoozed", "Snoozed"),
                            ("released", "Released"),
                            ("cancelled", "Cancelled"),
                        ],
                        max_length=16,
                        verbose_name="outcome",
                    ),
                ),
                (
                    "exception_class",
                    models.CharField(blank=True, max_length=255, verbose_name="exception class"),
                ),
                ("message", models.TextField(blank=True, verbose_name="message")),
                ("traceback", models.TextField(blank=True, verbose_name="traceback")),
                ("fingerprint", models.CharField(blank=True, max_length=32, verbose_name="fingerprint")),
                ("return_value", django_pgqueue.fields.JSONTextField(null=True, verbose_name="return value")),
                ("log_tail", models.TextField(blank=True, verbose_name="log tail")),
            ],
            options={
                "verbose_name": "attempt",
                "verbose_name_plural": "attempts",
                "default_permissions": ("view",),
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(
                            (
                                "outcome__in",
                                ["succeeded", "failed", "lost", "snoozed", "released", "cancelled"],
                            )
                        ),
                        name="pgqueue_attempt_outcome_known",
                    ),
                    models.CheckConstraint(
                        condition=Q(("number__gte", 1)), name="pgqueue_attempt_numbered_from_one"
                    ),
                ],
            },
        ),
        POSITION_SEQUENCE,
        STATE_STORAGE,
    ]
