"""Long runs that continue themselves: paused, resumed, cancelled, and their worker killed in the middle."""

import signal
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from django.core.management import call_command
from maintenance_tasks import runner
from maintenance_tasks.models import Run

from django_pgqueue import states
from django_pgqueue.models import Attempt, Job, JobState
from tests.processes.worker import Worker
from tests.waiting import wait_until

from ..conftest import Processes, waiting
from .maintenance_tasks import VisitAll, VisitGently
from .models import Item, Visit

ITEMS = 60
Status = Run.Status


@pytest.fixture(autouse=True)
def items(delete_jobs: None) -> Iterator[None]:
    """Sixty items, and nothing of the test before."""
    Item.objects.bulk_create(Item() for _ in range(ITEMS))
    yield
    Run.objects.update(status=Status.CANCELLED)
    for model in (Item, Visit):
        model.objects.all().delete()


@pytest.fixture
def worker(processes: Processes) -> Worker:
    """A running worker with one process, so that it is known who runs the job."""
    return processes.worker()


def test_a_run_continues_itself_until_all_is_done(processes: Processes) -> None:
    run = runner.start(VisitAll.name)
    processes.drain()
    run.refresh_from_db()
    assert (run.status, run.tick_count, run.tick_total) == (Status.SUCCEEDED, ITEMS, ITEMS)
    assert_each_visited_once()
    assert Job.objects.count() >= 3
    assert set(JobState.objects.values_list("status", "attempts")) == {(states.SUCCEEDED, 1)}


def test_a_run_is_paused_and_resumed(worker: Worker) -> None:
    run = runner.start(VisitAll.name)
    wait_for_visits(10)
    runner.pause(run)
    wait_for(run, Status.PAUSED)
    wait_until(lambda: not waiting(), message="a paused run still has a job")
    assert Visit.objects.count() < ITEMS
    runner.resume(run)
    wait_for(run, Status.SUCCEEDED)
    assert_each_visited_once()


def test_a_run_is_cancelled(worker: Worker) -> None:
    run = runner.start(VisitAll.name)
    wait_for_visits(10)
    runner.cancel(run)
    wait_for(run, Status.CANCELLED)
    wait_until(lambda: not waiting(), message="a cancelled run still has a job")
    assert Visit.objects.count() < ITEMS
    assert set(JobState.objects.values_list("status", flat=True)) == {states.SUCCEEDED}


def test_a_throttled_run_waits_its_time(worker: Worker) -> None:
    run = runner.start(VisitGently.name)
    scheduled = JobState.objects.filter(status=states.SCHEDULED)
    state = wait_until(lambda: scheduled.select_related("job").first(), message="nothing was put off")
    assert state.run_at == state.job.run_after
    assert 0.5 < (state.run_at - state.job.enqueued_at).total_seconds() <= 1.0
    Visit.objects.create(item_id=0, pid=0)
    wait_for(run, Status.SUCCEEDED)
    Visit.objects.filter(item_id=0).delete()
    assert_each_visited_once()


def test_a_killed_run_is_given_back_and_recovered_from_its_cursor(worker: Worker) -> None:
    run = runner.start(VisitAll.name)
    wait_for_visits(12)
    killed = worker.child
    freeze_at_work(worker)
    worker.kill_process(killed)
    worker.thaw()
    # The queue runs the job again at once. It finds a run that a job seems to be at work on, and leaves it.
    rerun = wait_until(
        lambda: JobState.objects.filter(status=states.SUCCEEDED, attempts=2).first(), message="not run again"
    )
    outcomes = Attempt.objects.filter(job_id=rerun.pk).order_by("number").values_list("outcome", "pid")
    assert list(outcomes) == [(states.LOST, killed), (states.SUCCEEDED, worker.child)]
    run.refresh_from_db()
    assert run.status == Status.RUNNING
    wait_until(lambda: recovered(run), message="the run never counted as stalled")
    wait_for(run, Status.SUCCEEDED)
    visits = Counter(Visit.objects.values_list("item_id", flat=True))
    assert set(visits) == set(Item.objects.values_list("pk", flat=True))
    again = [item for item, times in visits.items() if times > 1]
    assert len(again) <= VisitAll.batch_size, "more than the batch that was under way was repeated"


@pytest.mark.parametrize(
    ("ask", "asked", "done"),
    [
        (runner.pause, Status.PAUSING, Status.PAUSED),
        (runner.cancel, Status.CANCELLING, Status.CANCELLED),
    ],
)
def test_what_was_asked_of_a_run_is_done_although_its_worker_was_killed(
    processes: Processes, ask: Callable[[Run], None], asked: str, done: str
) -> None:
    first = processes.worker()
    run = runner.start(VisitAll.name)
    wait_for_visits(10)
    begun = freeze_at_work(first)
    ask(run)
    assert run.status == asked
    first.kill()
    processes.worker()
    wait_for(run, done)
    wait_until(lambda: not waiting(), message="a run that was asked to stop still has a job")
    outcomes = Attempt.objects.filter(job_id=begun.pk).order_by("number").values_list("outcome", flat=True)
    assert list(outcomes) == [states.LOST, states.SUCCEEDED]


def test_a_stopped_worker_hands_the_run_to_the_next(processes: Processes) -> None:
    first = processes.worker()
    run = runner.start(VisitAll.name)
    wait_for_visits(10)
    first.signal(signal.SIGTERM)
    first.wait_end(0)
    assert Visit.objects.count() < ITEMS
    processes.worker()
    wait_for(run, Status.SUCCEEDED)
    assert_each_visited_once()


def freeze_at_work(worker: Worker) -> JobState:
    """Freeze a worker between the beginning and the end of a job, and return that job."""

    def frozen_job() -> JobState | None:
        worker.freeze()
        job = JobState.objects.filter(status=states.RUNNING).first()
        if job is None:
            worker.thaw()
        return job

    return wait_until(frozen_job, message="never caught at work")


def assert_each_visited_once() -> None:
    visited = list(Visit.objects.order_by("item_id").values_list("item_id", flat=True))
    assert visited == list(Item.objects.order_by("pk").values_list("pk", flat=True))


def wait_for_visits(count: int) -> None:
    """Wait until so many items were processed."""
    wait_until(lambda: Visit.objects.count() >= count, 30.0, f"fewer than {count} items were processed")


def wait_for(run: Run, status: str) -> None:
    """Wait until the run has this status."""

    def reached() -> bool:
        run.refresh_from_db()
        return run.status == status

    wait_until(reached, 60.0, f"the run did not become {status}")


def recovered(run: Run) -> bool:
    """Do what a project's cron does: recover what is stalled."""
    generation = run.generation
    call_command("maintenance_tasks", "recover")
    run.refresh_from_db()
    return run.generation > generation
