"""PgQueuer: asyncio, a claim in batches, jobs that ended moved to a log of statistics."""

from benchmarks.contenders.python_peer import PythonPeer


class PgQueuer(PythonPeer):
    """At its best with asyncpg, uvloop and batches of 1000."""

    name = "pgqueuer"
    module = "pgqueuer"
    requirements = ("pgqueuer[asyncpg,cli]", "asyncpg", "uvloop")
    table = "pgqueuer"
    pending = "SELECT count(*) FROM pgqueuer"
