"""enqueue: jobs a second from one session, each enqueued and committed on its own."""

from benchmarks.contenders.base import Contender
from benchmarks.contenders.ours import OURS
from benchmarks.core.benchmark import Benchmark, Setting, lanes_of
from benchmarks.core.lanes import Lane, Sample
from benchmarks.core.processes import Failed


def lanes(setting: Setting) -> list[Lane]:
    """Return ours and each peer."""
    return lanes_of([OURS, *setting.peers], lambda contender: enqueue(setting, contender, "enqueue"))


def enqueue(setting: Setting, contender: Contender, command: str) -> Sample:
    """Enqueue all once, with no worker, and count what is stored."""
    with contender.place(setting.databases, 0, more=setting.size) as place:
        seconds = place.ask(command, setting.size)["seconds"]
        stored = place.left()
    if stored != setting.size:
        raise Failed(f"{contender.name}: {stored} of {setting.size} jobs were stored")
    return Sample(setting.size / seconds)


BENCHMARK = Benchmark(
    name="enqueue",
    unit="jobs/s",
    about="one job a transaction, one session, no worker",
    sized="jobs",
    size=5_000,
    short=500,
    lanes=lanes,
)
