"""What the audit says: findings of bandit that nobody answered, and honest words about what pip-audit saw."""

from pathlib import Path

import pytest

from devtools.audit import unanswered, verdict

SOURCE = """first = 1
run(command)  # noqa: S603 - our own
other(
    random.random(),  # noqa: S311
)
"""


def finding(test: str, *lines: int, filename: str = "module.py") -> dict[str, object]:
    return {"test_id": test, "filename": filename, "line_number": lines[0], "line_range": list(lines)}


@pytest.mark.parametrize(
    ("test", "lines", "is_answered"),
    [
        ("B603", (2,), True),
        ("B311", (3, 4, 5), True),
        ("B603", (1,), False),
        ("B608", (2,), False),
        ("B31", (4,), False),
    ],
)
def test_a_finding_is_answered_by_the_reason_on_its_own_lines(
    test: str, lines: tuple[int, ...], is_answered: bool, tmp_path: Path
) -> None:
    (tmp_path / "module.py").write_text(SOURCE)
    assert (list(unanswered([finding(test, *lines)], tmp_path)) == []) == is_answered


def test_statements_of_the_queue_are_built_from_names_of_its_own(tmp_path: Path) -> None:
    room = tmp_path / "django_pgqueue" / "sql" / "claim.py"
    room.parent.mkdir(parents=True)
    room.write_text(SOURCE)
    there = "django_pgqueue/sql/claim.py"
    assert list(unanswered([finding("B608", 1, filename=there)], tmp_path)) == []
    assert len(list(unanswered([finding("B105", 1, filename=there)], tmp_path))) == 1


FINE = {"name": "django", "version": "6.1", "vulns": []}
SKIPPED = {"name": "psycopg", "skip_reason": "not found"}
HIT = {"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}


def test_a_known_vulnerability_fails() -> None:
    assert verdict([FINE, HIT]) == (1, "pip-audit: a 1: CVE-1, mended in 2")


def test_what_was_not_audited_is_said() -> None:
    assert verdict([FINE, SKIPPED]) == (
        0,
        "pip-audit: nothing known against 1 packages, 1 that it does not know",
    )
    assert (
        verdict([SKIPPED])[1] == "pip-audit: nothing was audited, its service knows none of 1 packages here"
    )
