"""The cause of jobs that died before the verbs wrote it."""

from django.db import migrations

NAME_CAUSES = """
UPDATE django_pgqueue_jobstate AS state
SET cause = coalesce(
    (SELECT CASE WHEN attempt.fingerprint IN ('', 'lost')
                 THEN md5((SELECT task_path FROM django_pgqueue_job AS job WHERE job.id = attempt.job_id)
                          || E'\\n' || attempt.exception_class)
                 ELSE attempt.fingerprint END
     FROM django_pgqueue_attempt AS attempt
     WHERE attempt.job_id = state.job_id AND attempt.number = state.attempts),
    'unknown')
WHERE status = 'dead' AND cause IS NULL
"""


class Migration(migrations.Migration):
    dependencies = [("django_pgqueue", "0006_job_steps")]

    operations = [migrations.RunSQL(NAME_CAUSES, migrations.RunSQL.noop)]
