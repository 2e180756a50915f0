"""A session that looks at the database again and again, and comes back after each outage."""

from collections.abc import Callable

import psycopg


class Onlooker:
    """Connects when it looks; while the database is away, a look sees nothing."""

    def __init__(self, connect: Callable[[], psycopg.Connection]) -> None:
        self._connect = connect
        self._session: psycopg.Connection | None = None

    def look(self, act: Callable[[psycopg.Connection], None]) -> None:
        """Have the session looked at by ``act``, as far as the database lets it."""
        try:
            self._session = self._session or self._connect()
            act(self._session)
        except psycopg.Error:
            self.close()

    def close(self) -> None:
        """Close the session."""
        if self._session:
            self._session.close()
        self._session = None
