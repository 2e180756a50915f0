"""``pgqueue_doctor``: looks at the server, the tables, the settings and the workers, and says what is amiss.

``findings`` is what a look gives; ``server``, ``tables`` and ``jobs`` are the looks.  Each finding has what
mends it: SQL, a setting, or a command.  Nothing is changed, and every look is bounded.
"""

from collections.abc import Callable, Iterator

from django.db import DatabaseError

from ..backend import PgQueueBackend
from .findings import BAD, Finding, Patient
from .jobs import look_at_jobs
from .server import look_at_server
from .tables import look_at_tables

LOOKS: tuple[tuple[str, Callable[[Patient], Iterator[Finding]]], ...] = (
    ("server", look_at_server),
    ("tables", look_at_tables),
    ("jobs", look_at_jobs),
)


def examine(backend: PgQueueBackend) -> list[Finding]:
    """Return everything that is amiss, the worst first; a look that fails is a finding itself."""
    patient = Patient(backend)
    found: list[Finding] = []
    for name, look in LOOKS:
        try:
            found += look(patient)
        except DatabaseError as error:
            said = f"The look at the {name} failed: {str(error).strip()}"
            found.append(
                Finding(f"{name}-look", BAD, said, "Run manage.py migrate; look at the rights of this role.")
            )
    return sorted(found, key=lambda finding: finding.rank)
