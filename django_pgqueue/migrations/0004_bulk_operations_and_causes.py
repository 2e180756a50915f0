"""Bulk operations, a column for the cause of dead jobs, and the permissions of operators."""

from django.db import migrations, models

import django_pgqueue.fields


class Migration(migrations.Migration):
    """Adds tables, and a column that is NULL: no row is rewritten."""

    dependencies = [
        ("django_pgqueue", "0003_attempt_recorded"),
    ]

    operations = [
        migrations.CreateModel(
            name="BulkBatch",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False, verbose_name="id")),
                ("operation_id", models.BigIntegerField(verbose_name="operation")),
                ("job_ids", django_pgqueue.fields.JSONTextField(verbose_name="jobs")),
            ],
            options={
                "verbose_name": "batch of a bulk operation",
                "verbose_name_plural": "batches of bulk operations",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="BulkOperation",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False, verbose_name="id")),
                ("token", models.UUIDField(unique=True, verbose_name="token")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("retry", "Retry"),
                            ("discard", "Discard"),
                            ("cancel", "Cancel"),
                            ("run-now", "Run now"),
                        ],
                        max_length=16,
                        verbose_name="what",
                    ),
                ),
                ("filters", django_pgqueue.fields.JSONTextField(verbose_name="jobs")),
                ("expected", models.BigIntegerField(verbose_name="jobs at the start")),
                ("per_minute", models.FloatField(blank=True, null=True, verbose_name="jobs a minute")),
                (
                    "standing",
                    models.CharField(
                        choices=[("running", "Running"), ("finished", "Finished"), ("stopped", "Stopped")],
                        max_length=16,
                        verbose_name="state",
                    ),
                ),
                ("changed", models.BigIntegerField(default=0, verbose_name="changed")),
                ("skipped", models.BigIntegerField(default=0, verbose_name="skipped")),
                ("conflicts", models.BigIntegerField(default=0, verbose_name="conflicts")),
                ("last_id", models.BigIntegerField(verbose_name="last job")),
                ("place", django_pgqueue.fields.JSONTextField(blank=True, null=True, verbose_name="place")),
                ("error", models.TextField(blank=True, default="", verbose_name="error")),
                (
                    "user_id",
                    models.CharField(blank=True, default="", max_length=255, verbose_name="user's key"),
                ),
                ("user_name", models.CharField(blank=True, default="", max_length=255, verbose_name="by")),
                (
                    "stopped_by",
                    models.CharField(blank=True, default="", max_length=255, verbose_name="stopped by"),
                ),
                ("created_at", models.DateTimeField(verbose_name="asked for at")),
                ("advanced_at", models.DateTimeField(blank=True, null=True, verbose_name="last batch at")),
                ("ended_at", models.DateTimeField(blank=True, null=True, verbose_name="ended at")),
            ],
            options={
                "verbose_name": "bulk operation",
                "verbose_name_plural": "bulk operations",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="DeadJob",
            fields=[],
            options={
                "verbose_name": "dead job",
                "verbose_name_plural": "dead jobs by cause",
                "proxy": True,
                "default_permissions": (),
                "indexes": [],
                "constraints": [],
            },
            bases=("django_pgqueue.job",),
        ),
        migrations.AlterModelOptions(
            name="job",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("retry_job", "Can retry dead and cancelled jobs"),
                    ("cancel_job", "Can cancel jobs"),
                    ("run_job", "Can run scheduled jobs now"),
                    ("discard_job", "Can discard dead and cancelled jobs"),
                    ("move_job", "Can change the queue and the priority of waiting jobs"),
                    ("rerun_job", "Can run a job again with other arguments"),
                ],
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
            },
        ),
        migrations.AddField(
            model_name="jobstate",
            name="cause",
            field=models.CharField(blank=True, max_length=32, null=True, verbose_name="cause"),
        ),
        migrations.AddIndex(
            model_name="bulkbatch",
            index=models.Index(fields=["operation_id", "id"], name="pgqueue_bulk_batches"),
        ),
        migrations.AddIndex(
            model_name="bulkoperation",
            index=models.Index(
                condition=models.Q(("standing", "running")), fields=["id"], name="pgqueue_bulk_running"
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkoperation",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["retry", "discard", "cancel", "run-now"])),
                name="pgqueue_bulk_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkoperation",
            constraint=models.CheckConstraint(
                condition=models.Q(("standing__in", ["running", "finished", "stopped"])),
                name="pgqueue_bulk_standing_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkoperation",
            constraint=models.CheckConstraint(
                condition=models.Q(("per_minute__isnull", True), ("per_minute__gt", 0), _connector="OR"),
                name="pgqueue_bulk_rate_is_positive",
            ),
        ),
    ]
