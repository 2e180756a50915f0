"""The server: version, connections, autovacuum, clocks, poolers, NOTIFY, and who pins the xmin horizon."""

import time
from collections.abc import Iterator

from .. import sql
from .findings import BAD, NOTE, WARN, Finding, Patient, percent, span

OLDEST_SERVER = 15
CROWDED = 0.8
SKEW = 2.0
"""Seconds between two clocks that are worth a word; the queue itself goes by the database's alone."""
NOTIFY_FULL = 0.1
PINNED_FOR = 300.0
POOLED_LOOKS = 5


def look_at_server(patient: Patient) -> Iterator[Finding]:
    """Yield what is amiss with the server and the way to it."""
    before = time.time()
    version, most, reserved, used, autovacuum, counts, fsync, notify, clock = patient.ask(sql.SERVER)[0]
    here = (before + time.time()) / 2
    if version // 10000 < OLDEST_SERVER:
        said = f"The server is PostgreSQL {version // 10000}; {OLDEST_SERVER} and later are supported."
        yield Finding("server-version", BAD, said, f"Upgrade to PostgreSQL {OLDEST_SERVER} or later.")
    if used > CROWDED * (most - reserved):
        said = f"{used} of {most - reserved} connections are in use ({percent(used / (most - reserved))})."
        yield Finding(
            "connections", WARN, said, f"ALTER SYSTEM SET max_connections = {2 * most}; -- and restart"
        )
    if not autovacuum or not counts:
        said = "Autovacuum is off: dead rows stay, and every claim walks past them."
        yield Finding("autovacuum", BAD, said, _system("autovacuum = on", "track_counts = on"))
    if not fsync:
        said = "fsync is off: a crash of the machine may lose the whole database, jobs included."
        yield Finding("fsync", BAD, said, _system("fsync = on"))
    if notify > NOTIFY_FULL:
        said = f"The queue of NOTIFY is {percent(notify)} full: a session listens and never reads."
        yield Finding("notify-queue", WARN, said, _LISTENERS)
    if abs(clock - here) > SKEW:
        said = f"The clocks of this machine and of the database differ by {abs(clock - here):.1f} s."
        yield Finding("clock-skew", WARN, said, "Let both follow NTP: chronyc makestep")
    yield from _standing(patient)
    yield from _pooler(patient)
    yield from _horizon(patient)


def _system(*settings: str) -> str:
    return " ".join(f"ALTER SYSTEM SET {each};" for each in settings) + " SELECT pg_reload_conf();"


_LISTENERS = (
    "SELECT pid, application_name, state, xact_start FROM pg_stat_activity ORDER BY xact_start NULLS LAST; "
    "-- then SELECT pg_terminate_backend(pid) for the oldest that listens"
)


def _standing(patient: Patient) -> Iterator[Finding]:
    is_standby, is_read_only, _has_tables = patient.ask(sql.STANDING)[0]
    if is_standby:
        said = "The database is a standby: nothing can be enqueued or claimed there."
        yield Finding("standby", BAD, said, f"Point DATABASES[{patient.database!r}] at the primary.")
    elif is_read_only:
        said = "Transactions are read-only by default: nothing can be enqueued or claimed."
        yield Finding("read-only", BAD, said, "ALTER DATABASE ... SET default_transaction_read_only = off;")


def _pooler(patient: Patient) -> Iterator[Finding]:
    patient.connection.ensure_connection()
    known = patient.connection.connection.info.backend_pid
    if patient.connection.in_atomic_block:
        return  # one transaction is one backend, whatever stands in between
    seen = {patient.ask(sql.BACKEND)[0][0] for _ in range(POOLED_LOOKS)}
    if seen == {known}:
        return
    settings = patient.backend.settings
    said = "A pooler stands between this process and PostgreSQL"
    said += "." if len(seen) == 1 else ": statements of one session reach several backends."
    if settings.notify or settings.prepared_statements:
        mend = (
            'OPTIONS: "notify": False, "prepared_statements": False; or connect workers to PostgreSQL itself'
        )
        yield Finding("pooler", WARN, said, mend)
    else:
        yield Finding(
            "pooler", NOTE, said, "Nothing: notify and prepared_statements are off, as they should be."
        )


def _horizon(patient: Patient) -> Iterator[Finding]:
    for kind, name, who, state, seconds, age in patient.ask(sql.HORIZON, seconds=PINNED_FOR):
        since = f" for {span(seconds)}" if seconds is not None else ""
        of = f" ({who}{', ' + state if state else ''})" if who else ""
        back = f"{age or 0:,} transactions back"
        said = f"The {kind} {name}{of} holds the xmin horizon{since}, {back}: dead rows stay."
        mend = {
            "session": f"SELECT pg_terminate_backend({name});",
            "slot": f"SELECT pg_drop_replication_slot('{name}'); -- if nobody needs it any more",
            "prepared": f"ROLLBACK PREPARED '{name}'; -- or COMMIT PREPARED",
        }[kind]
        yield Finding("xmin-horizon", WARN, said, mend)
