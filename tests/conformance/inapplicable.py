"""Which of Django's tests cannot apply to this backend, each with its reason; all others must pass.

`In its place` names the test in suite.py that does to the queue what the test meant.
"""

INAPPLICABLE = {
    "DummyBackendTestCase.test_refresh_result": (
        "changes the status of an object inside the Dummy backend's list; a job's status is a row that only "
        "the verbs change. In its place: test_refresh_result"
    ),
    "DummyBackendTestCase.test_refresh_result_async": (
        "changes the status of an object inside the Dummy backend's list; a job's status is a row that only "
        "the verbs change. In its place: test_refresh_result_async"
    ),
    "ImmediateBackendTestCase.test_cannot_get_result": (
        "asserts that results cannot be retrieved; here they can. In its place: TaskTestCase.test_get_result"
    ),
    "ImmediateBackendTestCase.test_cannot_refresh_result": (
        "asserts that results cannot be refreshed; here they can. In its place: test_refresh_result"
    ),
    "ImmediateBackendTestCase.test_cannot_pass_run_after": (
        "asserts that run_after is refused; here it is supported. "
        "In its place: TaskTestCase.test_using_run_after"
    ),
    "ImmediateBackendTestCase.test_throws_keyboard_interrupt": (
        "asserts that a KeyboardInterrupt of the task leaves enqueue(), as the task runs inside that call; "
        "here it runs in a worker's thread, which no Ctrl-C reaches, and such a task has failed like one "
        "that raises SystemExit. In its place: test_keyboard_interrupt"
    ),
    "ImmediateBackendTransactionTestCase.test_doesnt_wait_until_transaction_commit_by_default": (
        "asserts that the job has run before the transaction that enqueued it commits; here it exists for "
        "others from the commit on. In its place: test_runs_after_the_commit"
    ),
}
"""`Class.test` to the reason. Each must name a test that exists."""

IN_COROUTINE = {
    "DummyBackendTestCase.test_get_missing_result",
    "TaskTestCase.test_get_missing_result",
    "TaskTestCase.test_refresh_result",
}
"""Tests that also call a blocking method inside a coroutine. Django refuses its ORM there, so they run with
DJANGO_ALLOW_ASYNC_UNSAFE, the switch that Django documents for this; all others run without."""
