"""Metrics for Prometheus: a view for the project's urls, and the collector behind it.

    path("metrics", django_pgqueue.prometheus.metrics)

Needs the extra ``prometheus``.  Staff who may view jobs see it, and who sends the bearer token that stands in
the setting ``PGQUEUE_METRICS_TOKEN``.  All figures come from the database, so one endpoint tells of every
process and host; each process that serves the page looks them up at most once in ``KEPT_FOR`` seconds.
"""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from secrets import compare_digest
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from . import metrics as figures
from .histograms import THRESHOLDS
from .models import Job
from .registry import ALIVE, DEAD, STOPPING
from .rollups import Sums, Total

try:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.registry import Collector
except ImportError as error:
    raise ImproperlyConfigured(
        "django_pgqueue.prometheus needs the package prometheus-client. "
        "Install it with: pip install 'django-pgqueue-tasks[prometheus]'"
    ) from error

KEPT_FOR = 5.0
"""Seconds for which what was looked up is shown again."""
LEAST_TOKEN = 16
SYSTEM = "django_pgqueue"
_OUTCOMES = ("succeeded", "failed", "lost", "snoozed", "released", "cancelled")
_BAD = ("failed", "lost")
_WHERE = ("messaging_system", "database")
_QUEUE = (*_WHERE, "messaging_destination_name")
_TASK = (*_QUEUE, "messaging_operation_name", "task")
_BUCKETS = (*(f"{threshold:g}" for threshold in THRESHOLDS), "+Inf")


class PgQueueCollector(Collector):
    """Gives a registry of prometheus-client the metrics of all databases that TASKS names."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: tuple[float, list[Metric]] = (float("-inf"), [])

    def describe(self) -> Iterable[Metric]:
        """Return nothing: a registry would otherwise look things up when it is told of the collector."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Return what there is to say; raises what the database raises."""
        with self._lock:
            looked_at, found = self._found
            if time.monotonic() - looked_at >= KEPT_FOR:
                found = collected()
                self._found = (time.monotonic(), found)
            return found


def collected() -> list[Metric]:
    """Look all figures up and return them as metrics."""
    found = _families()
    for database, queues in figures.databases().items():
        _add(found, database, figures.look(database, queues))
    return list(found.values())


_COUNTERS = {
    "messaging_client_sent_messages": (
        "Jobs that were enqueued, those that were rolled back included.",
        (*_WHERE, "messaging_operation_name"),
    ),
    "messaging_client_consumed_messages": (
        "Attempts that ended, by what became of them.",
        (*_TASK, "outcome", "error_type"),
    ),
}
_HISTOGRAMS = {
    "messaging_process_duration_seconds": ("Seconds that attempts ran.", _TASK),
    "django_pgqueue_wait_duration_seconds": (
        "Seconds that first attempts had waited since they were due.",
        _TASK,
    ),
}
_GAUGES = {
    "django_pgqueue_jobs": (
        "Jobs that are ready or run; above a thousand ready jobs an estimate.",
        (*_QUEUE, "state"),
    ),
    "django_pgqueue_oldest_ready_seconds": ("How long the oldest ready job has waited.", _QUEUE),
    "django_pgqueue_oldest_running_seconds": ("How long the oldest running job has run.", _QUEUE),
    "django_pgqueue_queue_paused": (
        "1 for a queue that is paused or drains; an empty name stands for all queues.",
        _QUEUE,
    ),
    "django_pgqueue_scheduled_jobs": ("Jobs with a time ahead, counted up to 1000.", _WHERE),
    "django_pgqueue_dead_jobs": ("Dead jobs that are kept, counted up to 10000.", _WHERE),
    "django_pgqueue_workers": ("Workers: alive, stopping, or dead: not heard of.", (*_WHERE, "state")),
    "django_pgqueue_worker_slots": ("Jobs that the threads of living workers can run at once.", _WHERE),
    "django_pgqueue_tasks_left_out": (
        "Pairs of a task and a queue, beyond the 200 busiest, that the counters leave out.",
        _WHERE,
    ),
}


def _families() -> dict[str, Any]:
    kinds: tuple[tuple[Any, Mapping[str, tuple[str, tuple[str, ...]]]], ...] = (
        (CounterMetricFamily, _COUNTERS),
        (HistogramMetricFamily, _HISTOGRAMS),
        (GaugeMetricFamily, _GAUGES),
    )
    return {
        name: family(name, said, labels=labels)
        for family, named in kinds
        for name, (said, labels) in named.items()
    }


def _add(found: dict[str, Any], database: str, now: figures.Figures) -> None:
    where = (SYSTEM, database)
    if now.enqueued is not None:
        found["messaging_client_sent_messages"].add_metric((*where, "send"), now.enqueued)
    for total in now.totals.found:
        _add_total(found, where, total)
    for depth in now.depths:
        queue = (*where, depth.queue)
        found["django_pgqueue_jobs"].add_metric((*queue, "ready"), depth.ready)
        found["django_pgqueue_jobs"].add_metric((*queue, "running"), depth.running)
        found["django_pgqueue_oldest_ready_seconds"].add_metric(queue, depth.waited or 0.0)
        found["django_pgqueue_oldest_running_seconds"].add_metric(queue, depth.ran or 0.0)
    for name in now.pauses:
        found["django_pgqueue_queue_paused"].add_metric((*where, name), 1)
    found["django_pgqueue_scheduled_jobs"].add_metric(where, now.scheduled.jobs)
    found["django_pgqueue_dead_jobs"].add_metric(where, now.dead)
    for state in (ALIVE, STOPPING, DEAD):
        number = sum(worker.state == state for worker in now.workers)
        found["django_pgqueue_workers"].add_metric((*where, state), number)
    slots = sum(worker.slots for worker in now.workers if worker.state == ALIVE)
    found["django_pgqueue_worker_slots"].add_metric(where, slots)
    found["django_pgqueue_tasks_left_out"].add_metric(where, now.totals.left_out)


def _add_total(found: dict[str, Any], where: tuple[str, str], total: Total) -> None:
    task = (*where, total.queue, "process", total.task_path)
    sums: Sums = total.sums
    for outcome in _OUTCOMES:
        labels = (*task, outcome, outcome if outcome in _BAD else "")
        found["messaging_client_consumed_messages"].add_metric(labels, getattr(sums, outcome))
    found["messaging_process_duration_seconds"].add_metric(
        task, _cumulative(total.times.runs), sums.run_seconds
    )
    # The sum of the waits is not kept; without it, a format that wants one leaves out the count, too.
    found["django_pgqueue_wait_duration_seconds"].add_metric(task, _cumulative(total.times.waits), None)


def _cumulative(counts: Sequence[int]) -> list[tuple[str, float]]:
    return list(zip(_BUCKETS, accumulate(counts), strict=True))


# --- the view


collector = PgQueueCollector()
registry = CollectorRegistry(auto_describe=False)
registry.register(collector)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Show the metrics to staff who may view jobs and to who sends the token.

    401 to strangers, 403 to users who may not view jobs.  Raises ImproperlyConfigured for a token that is
    none.
    """
    if not _has_token(request) and not _may_view(request):
        user: Any = getattr(request, "user", None)
        if user is not None and user.is_authenticated:
            return HttpResponse("You may not view jobs.\n", status=403, content_type="text/plain")
        refusal = HttpResponse(
            "Send the token of PGQUEUE_METRICS_TOKEN as a bearer token, or log in to the admin.\n",
            status=401,
            content_type="text/plain",
        )
        refusal["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return refusal
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(registry), content_type=content_type)


def _has_token(request: HttpRequest) -> bool:
    token = getattr(settings, "PGQUEUE_METRICS_TOKEN", None)
    if token in (None, ""):
        return False
    if not isinstance(token, str) or len(token) < LEAST_TOKEN:
        raise ImproperlyConfigured(
            f"PGQUEUE_METRICS_TOKEN must be a text of at least {LEAST_TOKEN} characters, for example of "
            "secrets.token_urlsafe(); None or an empty text lets in staff only."
        )
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and compare_digest(given.strip().encode(), token.encode())


def _may_view(request: HttpRequest) -> bool:
    user: Any = getattr(request, "user", None)  # whatever model the project has for it, if any
    if user is None or not (user.is_active and user.is_staff):
        return False
    return bool(user.has_perm(f"{Job._meta.app_label}.view_job"))
