"""What stands in the database: functions, each made by a migration.

The text of a function that a migration has made never changes: its name has a number, and what is to be
otherwise becomes the next number, in a migration of its own.  So the code before an upgrade goes on working
while that after it starts.
"""

from .tables import JOB, POSITION, STATE
from .wakeup import CHANNEL, LOCK_CLASS

_FIRST = "django_pgqueue_enqueue_1"
ENQUEUE_FUNCTION = "django_pgqueue_enqueue_2"

# Whether somebody sleeps is seen by two locks, each taken for the moment of one expression.  Exclusively the
# key is to be had beside nobody only; shared beside sleepers, too, but not beside another enqueuer's moment.
# Three times refused and admitted: those are sleepers.  Where it does not become clear, ``sleepers`` is NULL.
#
# Commits with a NOTIFY wait for each other on the whole server, each for the disk.  So one transaction at a
# time carries one; whoever does not get that lock leaves it for after the commit, where it costs no write.
# Nor does anybody while the server's queue of notifications fills up: a full one fails the commit.
_ENQUEUE_FUNCTION = f"""
CREATE OR REPLACE FUNCTION {{name}}(
    backend text, task_path text, args json, kwargs json, queue text, priority integer,
    not_before timestamptz, delay float8, metadata json, max_attempts integer, timeout float8,
    backoff_base float8, backoff_cap float8, unique_key text,{{parameter}} look boolean, may_notify boolean,
    OUT id bigint, OUT enqueued_at timestamptz, OUT run_after timestamptz, OUT sleepers boolean,
    OUT is_notified boolean
) LANGUAGE plpgsql AS $body$
#variable_conflict use_variable
DECLARE
    is_later boolean;
    key integer;
    refused integer;
BEGIN
    enqueued_at := clock_timestamp();
    is_notified := false;
    run_after := coalesce(not_before, enqueued_at + make_interval(secs => delay));
    is_later := coalesce(run_after > enqueued_at, false);
    INSERT INTO {JOB} AS job (backend, task_path, args, kwargs, queue, priority, run_after, enqueued_at,
                              metadata, max_attempts, timeout, backoff_base, backoff_cap{{parent_id}})
    VALUES (backend, task_path, args, kwargs, queue, priority, run_after, enqueued_at,
            metadata, max_attempts, timeout, backoff_base, backoff_cap{{parent_id}})
    RETURNING job.id INTO id;
    INSERT INTO {STATE} (job_id, queue, priority, status, position, run_at, attempts, attempts_allowed,
                         lease_version, unique_key)
    VALUES (id, queue, priority,
            CASE WHEN is_later THEN 'scheduled' ELSE 'ready' END,
            CASE WHEN NOT is_later THEN nextval('{POSITION}') END,
            coalesce(run_after, enqueued_at), 0, max_attempts, 0, unique_key);
    IF NOT look OR run_after IS NOT NULL THEN
        RETURN;
    END IF;
    FOREACH key IN ARRAY ARRAY[hashtext(queue), hashtext('*')] LOOP
        refused := 0;
        sleepers := NULL;
        FOR attempt IN 1..8 LOOP
            IF (CASE WHEN pg_try_advisory_lock({LOCK_CLASS}, key)
                     THEN pg_advisory_unlock({LOCK_CLASS}, key) ELSE false END) THEN
                sleepers := false;
                EXIT;
            END IF;
            IF (CASE WHEN pg_try_advisory_lock_shared({LOCK_CLASS}, key)
                     THEN pg_advisory_unlock_shared({LOCK_CLASS}, key) ELSE false END) THEN
                refused := refused + 1;
                IF refused = 3 THEN
                    sleepers := true;
                    IF may_notify AND pg_notification_queue_usage() < 0.5
                       AND pg_try_advisory_xact_lock({LOCK_CLASS}, hashtext('{CHANNEL}')) THEN
                        PERFORM pg_notify('{CHANNEL}', queue);
                        is_notified := true;
                    END IF;
                    RETURN;
                END IF;
            END IF;
        END LOOP;
        IF sleepers IS NULL THEN
            RETURN;
        END IF;
    END LOOP;
END
$body$
"""

MAKE_ENQUEUE_FUNCTION_1 = _ENQUEUE_FUNCTION.format(name=_FIRST, parent_id="", parameter="")
DROP_ENQUEUE_FUNCTION_1 = f"DROP FUNCTION IF EXISTS {_FIRST}"

# The second one knows who enqueues.
MAKE_ENQUEUE_FUNCTION = _ENQUEUE_FUNCTION.format(
    name=ENQUEUE_FUNCTION, parent_id=", parent_id", parameter=" parent_id bigint,"
)
DROP_ENQUEUE_FUNCTION = f"DROP FUNCTION IF EXISTS {ENQUEUE_FUNCTION}"
