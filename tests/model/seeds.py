"""Bugs for the model to find: small changes of statements, of the kind that a hurried hand would make."""

import re
from typing import NamedTuple

import pytest

from django_pgqueue import holding, sql


class Seed(NamedTuple):
    """In the statement ``name``, what ``pattern`` matches first becomes ``instead``."""

    bug: str
    name: str
    pattern: str
    instead: str = ""

    def __str__(self) -> str:
        return self.bug

    def plant(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put the bug into the statement, for all its users; fails when there is nothing to change."""
        right = getattr(sql, self.name)
        wrong, changed = re.subn(self.pattern, self.instead, right, count=1)
        assert changed, f"{self.name} has no {self.pattern!r}: the seed is out of date"
        assert wrong != right
        monkeypatch.setattr(sql, self.name, wrong)
        for kind, statement in holding._STATEMENT_OF.items():
            if statement == right:
                monkeypatch.setitem(holding._STATEMENT_OF, kind, wrong)


_VERSION = r"AND state\.lease_version = given\.lease_version"
_TOKEN = r"AND state\.lease_token = given\.lease_token"
_SKIP = r"FOR NO KEY UPDATE SKIP LOCKED"

SEEDS = (
    Seed("complete without any fence", "COMPLETE", rf"{_VERSION}\s+{_TOKEN}"),
    Seed("complete without the token", "COMPLETE", _TOKEN),
    Seed("complete by the token alone", "COMPLETE", _VERSION),
    Seed("fail without any fence", "FAIL", rf"{_VERSION}\s+{_TOKEN}"),
    Seed("release without any fence", "RELEASE", rf"{_VERSION}\s+{_TOKEN}"),
    Seed("renew without the token", "RENEW", _TOKEN),
    Seed("renew waits for rows", "RENEW", r" SKIP LOCKED"),
    Seed("rescue does not look again", "RESCUE", _SKIP),
    Seed(
        "rescue takes jobs whose lease lasts",
        "RESCUE",
        r"AND lease_expires_at < \(SELECT clock_timestamp\(\)\)",
    ),
    Seed(
        "rescue forgets that the job was asked to cancel",
        "RESCUE",
        r"WHEN cancel_requested THEN 'cancelled'\s+WHEN",
        "WHEN",
    ),
    Seed("rescue charges nothing", "RESCUE", r"attempts = state\.attempts \+ 1", "attempts = state.attempts"),
    Seed("fail gives one attempt too many", "FAIL", r"ended \+ 1 >= allowed", "ended >= allowed"),
    Seed(
        "fail forgets that the job was asked to cancel",
        "FAIL",
        r"WHEN cancel_requested THEN 'cancelled'\s+WHEN",
        "WHEN",
    ),
    Seed("snooze is charged", "SNOOZE", r"attempts_allowed = state\.attempts_allowed \+ 1, "),
    Seed("release keeps the old place", "RELEASE", r"position = nextval\('\w+'\),"),
    Seed("release of what never started leaves an attempt", "RELEASE", r"WHERE started_ago IS NOT NULL"),
    Seed("claim takes a job that another has just taken", "CLAIM", _SKIP),
    Seed(
        "claim by the order of ids",
        "CLAIM",
        r"ORDER BY \(priority \* -1\), position, job_id",
        "ORDER BY job_id",
    ),
    Seed("claim keeps the lease version", "CLAIM", r"lease_version = state\.lease_version \+ 1,"),
    Seed("promote does not look again", "PROMOTE", _SKIP),
    Seed("promote takes what is not due", "PROMOTE", r"AND run_at <= \(SELECT clock_timestamp\(\)\)"),
    Seed(
        "retry of two jobs of one key",
        "RETRY",
        r"SELECT DISTINCT ON \([^)]*\), unique_key IS NULL\)",
        "SELECT",
    ),
    Seed("retry keeps the wish to cancel", "RETRY", r"cancel_requested_at = NULL,\s+"),
    Seed(
        "cancel ends a running job",
        "CANCEL",
        r"CASE WHEN status = 'running' THEN status ELSE 'cancelled' END",
        "'cancelled'",
    ),
    Seed("prune does not look again", "PRUNE", r"FOR UPDATE SKIP LOCKED"),
    Seed(
        "prune leaves the attempts",
        "PRUNE",
        r"DELETE FROM django_pgqueue_attempt AS attempt USING old WHERE",
        "DELETE FROM django_pgqueue_attempt AS attempt USING old WHERE false AND",
    ),
    Seed("prune leaves the steps", "PRUNE", r"AS step USING old WHERE", "AS step USING old WHERE false AND"),
    Seed("consume without any fence", "CONSUME", rf"{_VERSION}\s+{_TOKEN}"),
    Seed(
        "a zombie records steps",
        "RECORD_STEP",
        r"AND lease_version = %\(lease_version\)s AND lease_token = %\(lease_token\)s",
    ),
    Seed(
        "a worker's dead claim is released though it is held",
        "RELEASE_UNHELD",
        r"AND job_id <> ALL\(%\(held\)s::bigint\[\]\)",
    ),
)
