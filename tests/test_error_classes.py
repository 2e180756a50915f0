"""The class of a stored error: found where Django looks, and inside other classes."""

import pytest
from django.contrib.auth.models import Group

from django_pgqueue.results import JobError


class Outer:
    class Inner(Exception):
        pass

    attribute = 1


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("builtins.ValueError", ValueError),
        ("django.contrib.auth.models.Group.DoesNotExist", Group.DoesNotExist),
        (f"{__name__}.Outer.Inner", Outer.Inner),
    ],
)
def test_a_class_is_found(path: str, expected: type[BaseException]) -> None:
    assert JobError(exception_class_path=path, traceback="").exception_class is expected


@pytest.mark.parametrize(
    "path",
    [
        "no_such_package.errors.Foreign",
        f"{__name__}.Outer.Missing",
        f"{__name__}.Outer.attribute",
        f"{__name__}.f.<locals>.Local",
        "builtins",
        "",
    ],
)
def test_a_class_that_is_not_there_is_an_import_error(path: str) -> None:
    with pytest.raises(ImportError):
        _ = JobError(exception_class_path=path, traceback="").exception_class


def test_what_is_no_exception_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="does not reference a valid exception"):
        _ = JobError(exception_class_path="subprocess.run", traceback="").exception_class
