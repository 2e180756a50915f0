"""Dead jobs by cause: what the page of causes asks.

A job's cause is the fingerprint of its last attempt, written by the verb that lets it die.  It stands in the
state row of dead jobs only, in an index of dead jobs only: the jobs that do not die pay nothing for it.
"""

from .tables import ATTEMPT, JOB, STATE

# One probe for each cause, then so many of its latest jobs at most: a flood of one cause hides no other.
CAUSES = f"""
WITH RECURSIVE named AS (
    (SELECT cause, 1 AS place FROM {STATE} WHERE status = 'dead' AND cause IS NOT NULL
     ORDER BY cause LIMIT 1)
    UNION ALL
    SELECT (SELECT cause FROM {STATE} WHERE status = 'dead' AND cause > named.cause ORDER BY cause LIMIT 1),
           place + 1
    FROM named
    WHERE named.cause IS NOT NULL AND place < %(causes)s
)
SELECT named.cause, found.*,
       (SELECT job_id FROM {STATE} AS state
        WHERE status = 'dead' AND state.cause = named.cause
          AND finished_at >= %(since)s::timestamptz AND finished_at <= %(until)s::timestamptz
        ORDER BY finished_at DESC, job_id DESC LIMIT 1) AS latest_job
FROM named
CROSS JOIN LATERAL (
    SELECT sum(jobs)::bigint AS jobs, min(first_at) AS first_at, max(last_at) AS last_at,
           array_agg(slot) AS slots, array_agg(jobs) AS counts
    FROM (
        SELECT width_bucket(extract(epoch FROM finished_at)::float8,
                            extract(epoch FROM %(since)s::timestamptz)::float8,
                            extract(epoch FROM %(until)s::timestamptz)::float8, %(slots)s::int) AS slot,
               count(*) AS jobs, min(finished_at) AS first_at, max(finished_at) AS last_at
        FROM (
            SELECT finished_at FROM {STATE} AS state
            WHERE status = 'dead' AND state.cause = named.cause
              AND finished_at >= %(since)s::timestamptz AND finished_at <= %(until)s::timestamptz
            ORDER BY finished_at DESC
            LIMIT %(limit)s
        ) AS latest
        GROUP BY slot
    ) AS slots
) AS found
WHERE named.cause IS NOT NULL AND found.jobs > 0
"""

# When the first and the last dead job ended, as far as they have a cause: the width of a picture of them all.
SPAN_OF_THE_DEAD = f"""
SELECT (SELECT finished_at FROM {STATE} WHERE status = 'dead' AND finished_at IS NOT NULL
        ORDER BY finished_at LIMIT 1),
       (SELECT finished_at FROM {STATE} WHERE status = 'dead' AND finished_at IS NOT NULL
        ORDER BY finished_at DESC LIMIT 1),
       clock_timestamp()
"""

# What the last attempt of a few jobs says; of a traceback its end, where the error is.
LAST_WORDS = f"""
SELECT state.job_id, job.task_path, job.backend, attempt.exception_class,
       left(attempt.message, %(characters)s), right(attempt.traceback, %(traceback)s)
FROM unnest(%(job_ids)s::bigint[]) AS given(job_id)
JOIN {STATE} AS state ON state.job_id = ANY(ARRAY[given.job_id])
JOIN {JOB} AS job ON job.id = ANY(ARRAY[given.job_id])
LEFT JOIN {ATTEMPT} AS attempt ON attempt.job_id = state.job_id AND attempt.number = state.attempts
"""
