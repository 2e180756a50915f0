"""Says which time limit of the database ended an atomic task's session, and what can be done about it.

An atomic task computes inside an open transaction.  Limits that an administrator sets against forgotten
transactions hold for it as well: they are not lifted behind the administrator's back.  The server's own words
do not say what they have to do with the task.
"""

import psycopg

LIMITS = {"25P03": "idle_in_transaction_session_timeout", "25P04": "transaction_timeout"}
"""Settings by the SQLSTATE with which the server ends a session that is over its time."""


def limit_met(error: BaseException) -> str | None:
    """Return the name of the setting that ended the session of an error or of its cause, or None."""
    for one in (error, error.__cause__):
        if isinstance(one, psycopg.Error) and one.sqlstate in LIMITS:
            return LIMITS[one.sqlstate]
    return None


def explain(error: BaseException, seconds: float) -> None:
    """Add a note to an error that such a limit caused; the transaction had been open for so many seconds."""
    name = limit_met(error)
    if name is None:
        return
    error.add_note(
        f"django_pgqueue: an atomic task runs inside a transaction. After {seconds:.1f} s the database"
        f" ended it by {name}. Nothing was written. Compute in a job before, cut the job into smaller ones,"
        f" or lift the limit: SET LOCAL {name} = 0 as the task's first statement."
    )
