"""Calls that a task's function does not take are refused when they are enqueued, in Python's own words."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from django_pgqueue import enqueue_many
from django_pgqueue.models import Job
from django_pgqueue.signatures import Shape

from . import tasks


def none() -> None: ...
def one(a: Any) -> None: ...
def with_default(a: Any, b: Any = 2) -> None: ...
def only_names(a: Any, *, b: Any, c: Any = 3) -> None: ...
def only_places(a: Any, b: Any = 2, /, c: Any = 3) -> None: ...
def more_places(a: Any, *more: Any, b: Any = 2) -> None: ...
def more_names(a: Any, b: Any = 2, **more: Any) -> None: ...
def anything(*args: Any, **kwargs: Any) -> None: ...


def adds_an_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function("added", *args, **kwargs)

    return wrapper


FUNCTIONS = [none, one, with_default, only_names, only_places, more_places, more_names, anything]
ARGUMENTS: list[tuple[Any, ...]] = [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)]
KEYWORDS: list[dict[str, Any]] = [
    {name: 0 for place, name in enumerate("abcx") if number >> place & 1} for number in range(16)
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_call_is_refused_exactly_when_python_would_refuse_it(function: Callable[..., Any]) -> None:
    shape = Shape(function)
    for args in ARGUMENTS:
        for kwargs in KEYWORDS:
            assert (shape.problem(args, kwargs) is None) == returns(function, args, kwargs), (args, kwargs)


@pytest.mark.parametrize("function", FUNCTIONS[1:], ids=lambda function: function.__name__)
def test_the_parameter_for_the_context_is_not_the_callers(function: Callable[..., Any]) -> None:
    shape = Shape(function, skip_first=True)
    for args in ARGUMENTS:
        for kwargs in KEYWORDS:
            fits = returns(function, ("context", *args), kwargs)
            assert (shape.problem(args, kwargs) is None) == fits, (args, kwargs)


def returns(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    try:
        function(*args, **kwargs)
    except TypeError:
        return False
    return True


def test_a_decorator_may_add_arguments() -> None:
    decorated = adds_an_argument(with_default)
    decorated()
    assert Shape(decorated).problem((), {}) is None, "what is behind the decorator would need a"


def test_a_function_that_does_not_tell_takes_anything() -> None:
    with pytest.raises(ValueError, match="signature"):
        inspect.signature(max)
    shape = Shape(max)
    assert str(shape) == "(...)"
    assert shape.problem((), {"x": 1}) is None


REFUSED: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
    (tasks.coroutine, (), {"wrong": 1}, r"tests\.tasks\.coroutine\(value\): .*'(value|wrong)'"),
    (tasks.coroutine, (1,), {"wrong": 1}, r"tests\.tasks\.coroutine\(value\): .*'wrong'"),
    (tasks.coroutine, (), {}, r"tests\.tasks\.coroutine\(value\): missing .*'value'"),
    (tasks.coroutine, (1, 2), {}, r"tests\.tasks\.coroutine\(value\): too many"),
    (tasks.mail, ("a",), {"address": "b"}, r"tests\.tasks\.mail\(address, copies=1\): multiple .*'address'"),
    (tasks.other, (1,), {}, r"tests\.tasks\.other\(\): too many"),
    (tasks.with_context, (), {}, r"tests\.tasks\.with_context\(value\): missing .*'value'"),
    (tasks.with_context, (1, 2), {}, r"tests\.tasks\.with_context\(value\): too many"),
    (tasks.with_context, (1,), {"context": 2}, r"tests\.tasks\.with_context\(value\): multiple .*'context'"),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("task", "args", "kwargs", "words"), REFUSED)
def test_enqueue_names_the_task_its_signature_and_the_argument(
    task: Any, args: tuple[Any, ...], kwargs: dict[str, Any], words: str, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0):
        with pytest.raises(TypeError, match=words):
            task.enqueue(*args, **kwargs)
        with pytest.raises(TypeError, match=words):
            task.get_backend().enqueue(task, args, kwargs)


@pytest.mark.django_db
def test_each_call_of_many_is_looked_at() -> None:
    with pytest.raises(TypeError, match=r"item 2: tests\.tasks\.coroutine\(value\): .*'valve'"):
        tasks.coroutine.enqueue_many([(1,), {"value": 2}, {"value": 3, "valve": 3}])
    with pytest.raises(TypeError, match=r"item 1: tests\.tasks\.other\(\): too many"):
        enqueue_many([tasks.other.bind(), tasks.other.bind(5)])  # type: ignore[call-arg]
    assert Job.objects.count() == 0
    assert len(tasks.with_context.enqueue_many([(1,), {"value": 2}])) == 2
