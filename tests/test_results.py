"""Results of jobs in every state, also of jobs whose task's code is gone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test import override_settings

from django_pgqueue import sql
from django_pgqueue.compat import (
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
)
from django_pgqueue.exceptions import UnknownTask
from django_pgqueue.models import Job
from django_pgqueue.resolving import resolve_task
from django_pgqueue.results import RESULT_FIELDS
from django_pgqueue.tasks import PgQueueTask

from .aliases import BACKEND
from .support import (
    OVER,
    WORKER,
    claim_queue,
    completed,
    failed,
    make,
    settle_one,
    shown,
)
from .tasks import coroutine, mail, ok, other, with_context

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("invariants")]

# --- results


def result_of(made: Any) -> Any:
    return ok.get_result(str(made.job_id))


@pytest.mark.parametrize(
    ("status", "seen"),
    [
        ("scheduled", TaskResultStatus.READY),
        ("ready", TaskResultStatus.READY),
        ("running", TaskResultStatus.RUNNING),
        ("succeeded", TaskResultStatus.SUCCESSFUL),
        ("dead", TaskResultStatus.FAILED),
        ("cancelled", TaskResultStatus.FAILED),
    ],
)
def test_the_result_of_every_state(status: str, seen: TaskResultStatus) -> None:
    made = make(status)
    result = result_of(made)
    assert (result.id, result.status, result.is_finished) == (
        str(made.job_id),
        seen,
        status in ("succeeded", "dead", "cancelled"),
    )
    assert (result.finished_at is not None) == result.is_finished
    assert result.attempts == {"ready": 0, "cancelled": 0}.get(status, 1)
    assert result.worker_ids == [WORKER.worker_id] * result.attempts
    assert (result.started_at is not None) == (result.attempts > 0)
    assert result.last_attempted_at == result.started_at
    if status != "succeeded":
        with pytest.raises(ValueError):
            result.return_value  # noqa: B018


def test_the_result_of_a_success_holds_what_the_task_returned() -> None:
    (claimed,) = [make("running").claimed]
    Job.objects.complete([completed(claimed.fence, return_value='{"a":[-0.0]}')], worker=WORKER)
    result = ok.get_result(str(claimed.job_id))
    assert repr(result.return_value) == "{'a': [-0.0]}"
    assert result.errors == []


def test_the_result_of_a_failure_holds_every_error_in_order() -> None:
    made = make("running", failures=2, max_attempts=5)
    last = failed(made.fence, exception_class="builtins.KeyError", traceback="Traceback: last", final=True)
    Job.objects.fail([last], worker=WORKER)
    result = result_of(made)
    assert [error.exception_class_path for error in result.errors] == ["builtins.ValueError"] * 2 + [
        "builtins.KeyError"
    ]
    assert result.errors[-1].traceback == "Traceback: last"
    assert result.errors[-1].exception_class is KeyError
    assert (result.attempts, result.status) == (3, TaskResultStatus.FAILED)
    assert result.started_at < result.last_attempted_at


def test_a_lost_attempt_is_an_error_that_says_what_happened() -> None:
    made = make("running", lease=OVER, max_attempts=1)
    Job.objects.rescue(limit=10, server_up=0.0)
    (error,) = result_of(made).errors
    assert error.exception_class_path == "django_pgqueue.exceptions.LeaseExpired"
    assert WORKER.worker_id in error.traceback


def test_a_cancelled_job_has_an_error_that_says_so() -> None:
    (error,) = result_of(make("cancelled")).errors
    assert error.exception_class_path == "django_pgqueue.exceptions.Cancel"
    assert "cancelled" in error.traceback


def test_a_snoozed_attempt_is_an_attempt_and_no_error() -> None:
    result = result_of(make("scheduled"))
    assert (result.attempts, result.errors, result.status) == (1, [], TaskResultStatus.READY)


def test_a_retried_job_keeps_its_errors_and_is_ready_again() -> None:
    made = make("dead")
    Job.objects.retry([made.job_id])
    result = result_of(made)
    assert (result.status, result.finished_at, len(result.errors)) == (TaskResultStatus.READY, None, 1)


def test_refresh_reads_the_job_again() -> None:
    result = ok.enqueue(1)
    (claimed,) = claim_queue()
    result.refresh()
    assert result.status == TaskResultStatus.RUNNING
    settle_one("complete", claimed.fence, return_value="5")
    async_to_sync(result.arefresh)()
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 5)
    Job.objects.prune("succeeded", age=0.0, limit=10)
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()


@pytest.mark.django_db(transaction=True)
def test_an_attempt_that_ends_while_the_result_is_read_is_counted_once(
    second_connection: psycopg.Connection,
) -> None:
    made = make("running")

    def end_it_before_the_attempts_are_read(execute: Callable[..., Any], query: str, *rest: Any) -> Any:
        if sql.ATTEMPT in query:
            settle_one("fail", made.fence, connection=second_connection)
        return execute(query, *rest)

    with connection.execute_wrapper(end_it_before_the_attempts_are_read):
        result = result_of(made)
    assert (result.status, result.attempts, result.errors) == (TaskResultStatus.RUNNING, 1, [])
    assert result_of(made).attempts == 1


JUNK = [
    *("nope", "", " ", "0", "-1", "1.0", "1e3", "1; DROP TABLE", "None", "1\x00", "\udcff", "٣", "１"),
    *("9" * 19, "9" * 25, str(2**63), "00000000-0000-0000-0000-000000000000"),
    *(None, 1.5, [], object(), b"1", True),
]


@pytest.mark.parametrize("junk", JUNK, ids=shown)
def test_a_junk_id_is_of_no_result(junk: Any) -> None:
    ok.enqueue()
    for get in (task_backends["default"].get_result, async_to_sync(task_backends["default"].aget_result)):
        with pytest.raises(TaskResultDoesNotExist):
            get(junk)


def test_a_pruned_or_unknown_id_is_of_no_result() -> None:
    made = make("succeeded")
    Job.objects.prune("succeeded", age=0.0, limit=10)
    for missing in (str(made.job_id), str(made.job_id + 10**6)):
        with pytest.raises(TaskResultDoesNotExist):
            ok.get_result(missing)
        with pytest.raises(TaskResultDoesNotExist):
            async_to_sync(ok.aget_result)(missing)


def test_the_id_of_another_alias_is_of_no_result_here() -> None:
    params = {"BACKEND": BACKEND, "QUEUES": []}
    with override_settings(TASKS={"default": params, "second": params}):
        result = ok.using(backend="second").enqueue()
        assert task_backends["second"].get_result(result.id).id == result.id
        with pytest.raises(TaskResultDoesNotExist):
            task_backends["default"].get_result(result.id)


def test_the_id_of_another_task_is_a_mismatch() -> None:
    result = ok.enqueue()
    with pytest.raises(TaskResultMismatch):
        other.get_result(result.id)
    assert task_backends["default"].get_result(result.id).task == ok


def test_a_result_has_the_task_with_the_options_of_its_enqueueing() -> None:
    result = mail.using(priority=-5, queue_name="other").enqueue("a@example.org")
    found = mail.get_result(result.id).task
    assert (found.priority, found.queue_name, found.func) == (-5, "other", mail.func)


@pytest.mark.parametrize("task", [ok, coroutine, with_context])
def test_every_kind_of_task_can_be_enqueued_and_found(task: PgQueueTask) -> None:
    result = task.enqueue(1)
    assert task.get_result(result.id).task == task


# --- tasks whose code is gone

BROKEN = {
    "syntax": "def f(:",
    "import": "import no_such_module_anywhere",
    "exit": "raise SystemExit(3)",
    "attribute": "None.no_such_attribute",
}


@pytest.fixture
def broken_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that cannot be imported."""
    for name, code in BROKEN.items():
        (tmp_path / f"broken_{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)


GONE = ["tests.tasks.no_such", "tests.no_such.task", "no_such_package.tasks.task", "tests.tasks.not_a_task",
        "tests.tasks.plain_function", "__main__.f", "nodots", "tests.tasks.ok.func",
        "os.system", "builtins.eval", "subprocess.Popen", "django_pgqueue.tasks.PgQueueTask",
        "django_pgqueue.task", "tests.tasks.ok.__class__", "tests.tasks.__builtins__", "tests.tasks.",
        ".tasks.ok", "..", "a..b"]  # fmt: skip


UNREADABLE = [path for path in GONE if "." in path]
UNREADABLE += [f"broken_{name}.f" for name in BROKEN]


@pytest.mark.parametrize("path", UNREADABLE)
@pytest.mark.usefixtures("broken_modules")
def test_the_result_of_a_task_whose_code_is_gone_can_be_read(path: str) -> None:
    made = make("dead", task_path=path)
    result = task_backends["default"].get_result(str(made.job_id))
    assert (result.status, result.task.module_path) == (TaskResultStatus.FAILED, path)
    assert (result.task.queue_name, result.task.priority, result.task.backend) == ("default", 0, "default")
    assert len(result.errors) == 1
    with pytest.raises(UnknownTask, match=path):
        result.task.func()
    assert repr(result)


@pytest.mark.parametrize("path", GONE)
def test_a_path_that_leads_to_no_task_is_unknown(path: str) -> None:
    with pytest.raises(UnknownTask, match=path):
        resolve_task(path)


@pytest.mark.parametrize(
    ("name", "error"),
    [("syntax", SyntaxError), ("import", ImportError), ("exit", SystemExit), ("attribute", AttributeError)],
)
@pytest.mark.usefixtures("broken_modules")
def test_what_a_module_raises_at_its_import_goes_through(name: str, error: type[BaseException]) -> None:
    """A module that is there and broken is an error of the task, not a task of a newer release."""
    with pytest.raises(error) as raised:
        resolve_task(f"broken_{name}.f")
    assert not isinstance(raised.value, UnknownTask)


def test_a_result_has_every_field_that_this_version_of_django_knows() -> None:
    assert set(RESULT_FIELDS) == set(TaskResult.__dataclass_fields__)
