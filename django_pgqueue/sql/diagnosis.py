"""What ``pgqueue_doctor`` asks of the server and of its catalogues; nothing here changes anything."""

from .claim import CLAIM
from .tables import JOB, STATE

# psycopg binds the parameters itself here: PostgreSQL takes none in an EXPLAIN.
EXPLAIN_CLAIM = f"EXPLAIN (FORMAT JSON) {CLAIM}"

SERVER = """
SELECT current_setting('server_version_num')::int, current_setting('max_connections')::int,
       current_setting('superuser_reserved_connections')::int,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
       current_setting('autovacuum')::boolean, current_setting('track_counts')::boolean,
       current_setting('fsync')::boolean, pg_notification_queue_usage()::float8,
       extract(epoch FROM clock_timestamp())::float8
"""

BACKEND = "SELECT pg_backend_pid()"

TABLES = """
SELECT class.relname, coalesce(stat.n_live_tup, 0), coalesce(stat.n_dead_tup, 0),
       extract(epoch FROM clock_timestamp() - greatest(stat.last_autovacuum, stat.last_vacuum))::float8,
       extract(epoch FROM clock_timestamp() - greatest(stat.last_autoanalyze, stat.last_analyze))::float8,
       pg_table_size(class.oid), coalesce(class.reloptions, '{}'), class.reltuples::bigint
FROM pg_class AS class
LEFT JOIN pg_stat_user_tables AS stat ON stat.relid = class.oid
WHERE class.oid = ANY(%(tables)s::text[]::regclass[])
ORDER BY class.relname
"""

INDEXES = """
SELECT class.relname, index.indisvalid, pg_relation_size(class.oid), class.reltuples::bigint
FROM pg_index AS index
JOIN pg_class AS class ON class.oid = index.indexrelid
WHERE index.indrelid = ANY(%(tables)s::text[]::regclass[])
ORDER BY class.relname
"""

# Everything that keeps vacuum from removing dead rows: snapshots, slots, and prepared transactions.
HORIZON = """
SELECT 'session', pid::text, coalesce(nullif(application_name, ''), usename, ''), coalesce(state, ''),
       extract(epoch FROM clock_timestamp() - xact_start)::float8, age(backend_xmin)::bigint
FROM pg_stat_activity
WHERE backend_xmin IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
  AND xact_start < clock_timestamp() - make_interval(secs => %(seconds)s)
UNION ALL
SELECT 'slot', slot_name, coalesce(plugin, slot_type), CASE WHEN active THEN 'active' ELSE 'inactive' END,
       NULL, greatest(age(xmin), age(catalog_xmin))::bigint
FROM pg_replication_slots
WHERE xmin IS NOT NULL
UNION ALL
SELECT 'prepared', gid, owner, '', extract(epoch FROM clock_timestamp() - prepared)::float8,
       age(transaction)::bigint
FROM pg_prepared_xacts
WHERE database = current_database()
ORDER BY 6 DESC NULLS LAST
LIMIT 10
"""

# Of the latest jobs of a task: a task that was removed long ago is no trouble if nothing of it lives.
TASK_LIVES = f"""
SELECT EXISTS (
    SELECT FROM (SELECT id FROM {JOB} WHERE task_path = %(task_path)s ORDER BY id DESC LIMIT 1000) AS latest
    JOIN {STATE} AS state ON state.job_id = latest.id AND state.status IN ('scheduled', 'ready', 'running'))
"""
