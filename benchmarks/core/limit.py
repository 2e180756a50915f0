"""The limit: what PostgreSQL can do with a bare table of two columns, claimed and updated in batches of 100.

Driven by pgbench, from the wheel of the embedded server or from PATH: one client, prepared statements, two
transactions for each batch, one to claim and one to end.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.core.databases import Databases
from benchmarks.core.lanes import CannotRun, Sample
from benchmarks.core.processes import Failed
from devtools.binaries import ServerError, binaries

BATCH = 100
TABLE = "CREATE TABLE bare (id bigint PRIMARY KEY, state smallint NOT NULL)"
INDEX = "CREATE INDEX bare_ready ON bare (id) WHERE state = 0"
SCRIPT = f"""
WITH ready AS MATERIALIZED (
    SELECT id FROM bare WHERE state = 0 ORDER BY id LIMIT {BATCH} FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE bare SET state = 1 FROM ready WHERE bare.id = ready.id RETURNING bare.id
)
SELECT array_agg(id) AS ids FROM claimed \\gset
UPDATE bare SET state = 2 WHERE id = ANY(:ids::bigint[]);
"""


def pgbench() -> str:
    """Return the program; raises CannotRun."""
    try:
        ours = binaries() / "pgbench"
    except ServerError:
        ours = Path("missing")
    found = str(ours) if ours.exists() else shutil.which("pgbench")
    if not found:
        raise CannotRun("pgbench is not installed; the test extra brings it along with the embedded server")
    return found


def limit(databases: Databases, jobs: int) -> Sample:
    """Claim and end so many rows; return rows per second."""
    program = pgbench()
    batches = max(jobs // BATCH, 1)
    url = databases.copy(databases.template(f"bare_{jobs}", lambda _: _fill(databases, jobs)), "bare_run")
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(SCRIPT)
        script.flush()
        options = ["-n", "-M", "prepared", "-c", "1", "-t", str(batches), "-f", script.name]
        done = subprocess.run([program, *options, url], capture_output=True, text=True)
    databases.drop("bare_run")
    found = re.search(r"tps = ([\d.]+)", done.stdout)
    if done.returncode or not found:
        raise Failed(f"pgbench failed: {(done.stdout + done.stderr)[-1000:]}")
    return Sample(float(found[1]) * BATCH, {"driver": _version(program)})


def _fill(databases: Databases, jobs: int) -> None:
    with databases.connect(f"bare_{jobs}") as connection:
        connection.execute(TABLE)
        connection.execute("INSERT INTO bare SELECT id, 0 FROM generate_series(1, %s) AS id", [jobs])
        connection.execute(INDEX)


def _version(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()
