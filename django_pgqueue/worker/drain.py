"""When a drain cannot go on: it must end by itself, also where there is nothing to drain from."""

import logging
import time

from ..connections import MIGRATE, PrivateConnection
from ..events import log

PATIENCE = 2.0
"""Leases without the database after which a drain that holds nothing gives up."""


def is_in_vain(connection: PrivateConnection, lease: float) -> bool:
    """Return whether the tables are missing, or the database has been away for too long; says so."""
    if connection.down_since is None:
        return False
    missing = connection.tables_missing
    over = time.monotonic() - connection.down_since > PATIENCE * lease
    if missing or over:
        log(
            "drain_failed",
            logging.ERROR,
            error=connection.last_error,
            hint=MIGRATE if missing else None,
        )
    return missing or over
