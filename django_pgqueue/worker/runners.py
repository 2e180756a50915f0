"""What runs tasks inside a child: M threads, and one event loop for coroutine tasks.

A thread takes the next execution, runs it, puts it on the tray for the engine, and takes the next:
it never waits for the database.  Coroutines go on to the loop, each in its own
``ThreadSensitiveContext`` (without one they would all share one database connection), and bounded.
"""

import asyncio
import ctypes
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from inspect import iscoroutinefunction
from queue import Empty, SimpleQueue
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.db import connections

from .. import announcements, running, states
from .. import execution as pipeline
from ..compat import AnyResult
from ..events import log
from ..exceptions import TaskTimeout
from ..execution import Execution
from . import atomic, cleanup
from .board import Board

SOFT_STOP_GRACE = 5.0
"""Seconds that a task has to end after its timeout before its whole process is replaced."""

Finished = tuple[Execution, AnyResult]


class TaskThread:
    """One thread that runs tasks, and the handle by which a timeout reaches into it."""

    def __init__(self, name: str, target: Callable[["TaskThread"], None]) -> None:
        self.lock = threading.Lock()
        self.execution: Execution | None = None
        self.thread = threading.Thread(target=target, args=(self,), name=name, daemon=True)
        self.thread.start()

    def interrupt(self, now: float) -> None:
        """Raise TaskTimeout in the thread when its task is past its timeout."""
        with self.lock:
            running = self.execution
            if running is None or running.interrupted or not running.deadline or now < running.deadline:
                return
            running.interrupted = True
            _raise_in(self.thread, TaskTimeout)

    def arm(self, execution: Execution) -> None:
        """Let timeouts reach this execution."""
        self.execution = execution

    def disarm(self, execution: Execution) -> None:
        """No timeout reaches the thread any more, one on its way included."""
        with self.lock:
            self.execution = None
            if execution.interrupted:
                _raise_in(self.thread, None)


def _raise_in(thread: threading.Thread, error: type[BaseException] | None) -> None:
    if thread.ident is not None:
        pointer = ctypes.py_object(error) if error is not None else None
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), pointer)


class Runners:
    """The threads and the loop of one child.

    ``may_start`` is asked right before each start; a refused execution comes back on the tray as it is.
    """

    def __init__(
        self,
        threads: int,
        coroutines: int,
        board: Board,
        tray: "SimpleQueue[Any]",
        may_start: Callable[[Execution], bool],
    ) -> None:
        self.board = board
        self.tray = tray
        self._may_start = may_start
        self._work: SimpleQueue[Any] = SimpleQueue()
        self._audience = announcements.Audience()
        self._loop = CoroutineLoop(coroutines, self)
        self.last_start = time.monotonic()
        self.threads = [TaskThread(f"pgqueue-task-{n}", self._run_thread) for n in range(1, threads + 1)]

    @property
    def waiting(self) -> int:
        """Executions that no thread has taken yet, or that wait for a place on the loop."""
        return self._work.qsize() + len(self._loop.parked)

    @property
    def awaiting(self) -> int:
        """Coroutines under way; they hold no thread."""
        return self._loop.active

    def submit(self, execution: Execution) -> None:
        """Queue an execution for the threads."""
        self._work.put(execution)

    def announce(self, finished: list[Finished]) -> None:
        """Have ``task_finished`` sent for these, by a task thread."""
        self._work.put(finished)

    def take_back(self) -> list[Execution]:
        """Return the executions that no thread has started; they are not run."""
        taken = self._loop.unpark_all()
        notices: list[Any] = []
        try:
            while True:
                item = self._work.get_nowait()
                (taken if isinstance(item, Execution) else notices).append(item)
        except Empty:
            for notice in notices:
                self._work.put(notice)
        return taken

    def interrupt_overdue(self, now: float) -> None:
        """Stop sync tasks that are past their timeout; coroutines look after their own."""
        for thread in self.threads:
            thread.interrupt(now)

    def close(self, patience: float) -> None:
        """End the threads once their work is done; waits at most ``patience`` seconds in all."""
        until = time.monotonic() + patience
        for _ in self.threads:
            self._work.put(None)
        for thread in self.threads:
            thread.thread.join(max(until - time.monotonic(), 0.0))

    # --- in a task thread

    def _run_thread(self, thread: TaskThread) -> None:
        while True:
            if self._work.empty():  # else the next job takes the place of the last one, at half the cost
                running.enter(None)
            item = self._work.get()
            if item is None:
                connections.close_all()
                return
            try:
                if isinstance(item, list):
                    self._send_finished(item)
                else:
                    self._take(thread, item)
            except BaseException as error:  # noqa: BLE001 - a late timeout, or a fault of ours: the thread lives on
                if isinstance(item, Execution) and item.decision is None:
                    self.finish(item, pipeline.decide_raise(item, error))
                with suppress(BaseException):  # a handler may fail on what the error is like
                    log("task_thread_error", logging.ERROR, exc_info=error, thread=thread.thread.name)

    def _take(self, thread: TaskThread, execution: Execution) -> None:
        if not self._may_start(execution):
            self.tray.put(execution)
            return
        if self._loop.park(execution):
            return
        running.enter(execution)
        self.start(execution)
        cleanup.before_task()
        if not self._prepare(execution):
            return
        if iscoroutinefunction(execution.task.func):  # type: ignore[union-attr]  # prepared
            self._loop.submit(execution)
            return
        decision = self._run_sync(thread, execution)
        cleanup.after_task()
        self.finish(execution, decision)

    def start(self, execution: Execution) -> None:
        """Note, here and on the board, that the task starts now and when it must have ended."""
        self.last_start = now = time.monotonic()
        execution.started = now
        if execution.job.timeout:
            execution.deadline = now + execution.job.timeout
        self.board.start(execution.entry, now, execution.deadline)

    def _prepare(self, execution: Execution) -> bool:
        try:
            pipeline.prepare(execution)
        except BaseException as error:  # noqa: BLE001 - a module may raise anything at import, SystemExit included
            cleanup.after_task()
            self.finish(execution, pipeline.decide_raise(execution, error))
            return False
        if self._audience.listens("task_started", logging.INFO):
            _send("task_started", execution, execution.result)
            cleanup.after_task()  # a receiver may have left the connection in a broken transaction
        return True

    def is_heard(self, status: str) -> bool:
        """Return whether anybody listens to the end of a job with this status."""
        level = logging.INFO if status == states.SUCCEEDED else logging.ERROR
        return self._audience.listens("task_finished", level)

    def _run_sync(self, thread: TaskThread, execution: Execution) -> Any:
        try:
            thread.arm(execution)
            try:
                if pipeline.is_atomic(execution):
                    return atomic.run(execution, lambda: thread.disarm(execution))
                return pipeline.decide_return(execution, pipeline.call(execution))
            finally:
                thread.disarm(execution)
        except BaseException as error:  # noqa: BLE001 - SystemExit, KeyboardInterrupt ... of a task are its failure
            if isinstance(error, TaskTimeout) and execution.interrupted:
                error.args = (f"ran longer than its timeout of {execution.job.timeout:g} s",)
            return pipeline.decide_raise(execution, error)

    def finish(self, execution: Execution, decision: Any) -> None:
        """Put a decided execution on the tray."""
        execution.finished = time.monotonic()
        execution.decision = decision
        if execution.deadline:
            # What waits for the database has met its time limit: its child must not be killed for it.
            self.board.start(execution.entry, execution.started or execution.finished, 0.0)
        self.tray.put(execution)

    def _send_finished(self, finished: list[Finished]) -> None:
        for execution, result in finished:
            running.enter(execution)
            # Django's own receiver logs the traceback from sys.exc_info(): it must run in an except block.
            if execution.error is None:
                _send("task_finished", execution, result)
                continue
            try:
                raise execution.error
            except BaseException:  # noqa: BLE001
                _send("task_finished", execution, result)
        cleanup.after_task()


def _send(name: str, execution: Execution, result: Any) -> None:
    backend = type(execution.task.get_backend())  # type: ignore[union-attr]  # prepared
    announcements.send(name, sender=backend, task_result=result)


class CoroutineLoop:
    """The child's event loop, started by the first coroutine task.

    While too many are under way, further ones are parked, so that they keep no thread from functions.
    """

    def __init__(self, limit: int, runners: Runners) -> None:
        self._slots = threading.BoundedSemaphore(limit)
        self._limit = limit
        self._runners = runners
        self.parked: deque[Execution] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()
        self.active = 0

    def park(self, execution: Execution) -> bool:
        """Keep a coroutine task for later when the loop is full; False for anything else."""
        if self.active < self._limit or not pipeline.is_coroutine(execution):
            return False
        with self._starting:
            if self.active < self._limit:
                return False
            self.parked.append(execution)
            return True

    def unpark_all(self) -> list[Execution]:
        """Return what waits for a place; it is not run."""
        with self._starting:
            parked = list(self.parked)
            self.parked.clear()
            return parked

    def submit(self, execution: Execution) -> None:
        """Run a coroutine task on the loop; waits while too many are under way."""
        # It starts on the loop: one that a blocked loop never reached is not charged.
        execution.started = None
        self._runners.board.start(execution.entry, 0.0, 0.0)
        self._slots.acquire()
        with self._starting:
            self.active += 1
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=_run_loop, args=(self._loop,), name="pgqueue-loop", daemon=True
                ).start()
        asyncio.run_coroutine_threadsafe(self._run(execution), self._loop)

    async def _run(self, execution: Execution) -> None:
        running.enter(execution)
        try:
            self._runners.start(execution)
            async with ThreadSensitiveContext() as context:
                decision = await self._decide(execution)
                if context in SyncToAsync.context_to_thread_executor:
                    await sync_to_async(connections.close_all)()
        except BaseException as error:  # noqa: BLE001 - recorded as the task's failure
            decision = pipeline.decide_raise(execution, error)
        with self._starting:
            self.active -= 1
            if self.parked:
                self._runners.submit(self.parked.popleft())
        self._slots.release()
        self._runners.finish(execution, decision)

    async def _decide(self, execution: Execution) -> Any:
        task = asyncio.ensure_future(_contained(execution))
        timeout = execution.job.timeout
        done, _ = await asyncio.wait({task}, timeout=timeout)
        if not done:
            task.cancel()
            done, _ = await asyncio.wait({task}, timeout=SOFT_STOP_GRACE)
            error = TaskTimeout(f"ran longer than its timeout of {timeout:g} s")
            return pipeline.decide_raise(execution, error)
        value, raised = task.result()
        if raised is not None:
            return pipeline.decide_raise(execution, raised)
        return pipeline.decide_return(execution, value)


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    while True:  # a task that stops the loop stops nobody's work
        loop.run_forever()


async def _contained(execution: Execution) -> tuple[Any, BaseException | None]:
    # SystemExit and KeyboardInterrupt would end the loop if they left the coroutine.
    try:
        return await pipeline.call(execution), None
    except asyncio.CancelledError as error:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        return None, error
    except BaseException as error:  # noqa: BLE001
        return None, error
