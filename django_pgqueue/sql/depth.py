"""How deep the queues are: counted as far as is cheap, estimated beyond, and sampled once a minute."""

from .tables import STATE

SAMPLE = "django_pgqueue_queuesample"

_READY = f"FROM {STATE} WHERE status = 'ready' AND queue"
_CLAIM_ORDER = "ORDER BY (priority * -1), position, job_id"

# Positions rise with time within a priority, so the first of each priority is the oldest there.  One probe
# per distinct queue, and per distinct priority in it, emulates a loose index scan.
DEPTHS = f"""
WITH RECURSIVE found AS (
    (SELECT queue, 1 AS place FROM {STATE} WHERE status = 'ready' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT queue {_READY} > found.queue ORDER BY queue LIMIT 1), place + 1
    FROM found
    WHERE found.queue IS NOT NULL AND place < %(queues)s
), running AS (
    SELECT queue, count(*) AS jobs, min(claimed_at) AS since
    FROM (SELECT queue, claimed_at FROM {STATE} WHERE status = 'running'
          ORDER BY claimed_at, job_id LIMIT %(limit)s) AS counted
    GROUP BY queue
), ready AS (
    SELECT found.queue, counted.jobs, least(counted.since, head.since) AS since
    FROM found
    CROSS JOIN LATERAL (
        SELECT count(*) AS jobs, min(run_at) AS since
        FROM (SELECT run_at {_READY} = found.queue {_CLAIM_ORDER} LIMIT %(limit)s) AS counted
    ) AS counted
    CROSS JOIN LATERAL (
        WITH RECURSIVE line AS (
            (SELECT (priority * -1) AS rank, run_at {_READY} = found.queue {_CLAIM_ORDER} LIMIT 1)
            UNION ALL
            SELECT next.rank, next.run_at
            FROM line
            CROSS JOIN LATERAL (
                SELECT (priority * -1) AS rank, run_at {_READY} = found.queue AND (priority * -1) > line.rank
                {_CLAIM_ORDER} LIMIT 1
            ) AS next
        )
        SELECT min(run_at) AS since FROM line
    ) AS head
    WHERE found.queue IS NOT NULL
)
SELECT queue, coalesce(ready.jobs, 0), coalesce(running.jobs, 0),
       extract(epoch FROM clock_timestamp() - ready.since)::float8,
       extract(epoch FROM clock_timestamp() - running.since)::float8
FROM ready FULL JOIN running USING (queue)
ORDER BY queue
"""

SCHEDULED = f"""
SELECT (SELECT count(*) FROM (SELECT FROM {STATE} WHERE status = 'scheduled'
                              ORDER BY run_at, job_id LIMIT %(limit)s) AS counted),
       extract(epoch FROM (SELECT run_at FROM {STATE} WHERE status = 'scheduled'
                           ORDER BY run_at, job_id LIMIT 1) - clock_timestamp())::float8,
       extract(epoch FROM clock_timestamp())::float8
"""

# What the planner believes costs a plan and reads nothing.  No parameter can stand in an EXPLAIN: the name is
# put in as a literal, quoted by psycopg.
PLANNED_READY = f"EXPLAIN (FORMAT JSON) SELECT FROM {STATE} WHERE status = 'ready' AND queue = {{}}"

NOW = "SELECT clock_timestamp()"

# Whether the database can do the queue's work at all: has its tables, and takes writes.
STANDING = f"""
SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::boolean,
       to_regclass('{STATE}') IS NOT NULL
"""

ADD_SAMPLE = f"""
INSERT INTO {SAMPLE} (taken_at, queue, ready, running, oldest)
SELECT date_bin('1 minute', clock_timestamp(), '2000-01-01 00:00+00'), queue, ready, running, oldest
FROM unnest(%(queues)s::text[], %(ready)s::bigint[], %(running)s::bigint[], %(oldest)s::float8[])
     AS given(queue, ready, running, oldest)
ORDER BY queue
ON CONFLICT (taken_at, queue) DO NOTHING
RETURNING 1
"""

LAST_SAMPLE = f"""
SELECT extract(epoch FROM clock_timestamp() - taken_at)::float8 FROM {SAMPLE} ORDER BY taken_at DESC LIMIT 1
"""

SAMPLES = f"""
SELECT extract(epoch FROM date_bin(make_interval(secs => %(span)s), taken_at, '2000-01-01 00:00+00'))::bigint,
       queue,
       max(ready)::float8, max(oldest)::float8
FROM {SAMPLE}
WHERE taken_at > date_bin(make_interval(secs => %(span)s), (SELECT clock_timestamp()), '2000-01-01 00:00+00')
                 - make_interval(secs => %(window)s)
GROUP BY 1, 2
ORDER BY 1, 2
"""

PRUNE_SAMPLES = f"""
WITH old AS MATERIALIZED (
    SELECT taken_at, queue FROM {SAMPLE}
    WHERE taken_at < (SELECT clock_timestamp()) - make_interval(secs => %(age)s)
    ORDER BY taken_at, queue
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
DELETE FROM {SAMPLE} AS sample USING old WHERE (sample.taken_at, sample.queue) = (old.taken_at, old.queue)
RETURNING 1
"""
