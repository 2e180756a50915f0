"""Procrastinate: asyncio, functions in the database, one job a round trip."""

from benchmarks.contenders.python_peer import PythonPeer


class Procrastinate(PythonPeer):
    """At its best with uvloop, 20 jobs at a time and a pool of connections."""

    name = "procrastinate"
    module = "procrastinate"
    requirements = ("procrastinate", "psycopg[binary,pool]", "uvloop")
    table = "procrastinate_jobs"
    pending = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
