"""Steps: a table of its own, empty on a live database."""

import django.db.models.deletion
from django.db import migrations, models

import django_pgqueue.fields


class Migration(migrations.Migration):
    dependencies = [("django_pgqueue", "0005_index_of_causes")]

    operations = [
        migrations.CreateModel(
            name="JobStep",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "job_id", "name", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=200, verbose_name="name")),
                ("result", django_pgqueue.fields.JSONTextField(null=True, verbose_name="result")),
                ("lease_version", models.BigIntegerField(verbose_name="lease version")),
                ("recorded_at", models.DateTimeField(verbose_name="recorded at")),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="steps",
                        to="django_pgqueue.job",
                        verbose_name="job",
                    ),
                ),
            ],
            options={
                "verbose_name": "step",
                "verbose_name_plural": "steps",
                "abstract": False,
                "default_permissions": (),
            },
        ),
    ]
