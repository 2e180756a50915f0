"""The pictures of the overview: which numbers stand in which chart, and what each tells in words."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils import timezone
from django.utils.translation import gettext as _

from django_pgqueue import histograms
from django_pgqueue.admin.wording import NOTHING, age, duration, number

from .charts import Chart, Line, area, nice_top, on_log_scale, path, stacked
from .figures import Past

SPARK_WIDTH, SPARK_HEIGHT = 120, 24
SHORTEST = 0.001
"""Seconds at the foot of the charts of times."""


@dataclass(frozen=True, slots=True)
class Spark:
    """A small filled shape in a table, and the highest value in words."""

    path: str
    told: str
    width: int = SPARK_WIDTH
    height: int = SPARK_HEIGHT


def charts(past: Past) -> list[Chart]:
    """Return the large charts."""
    return [_throughput(past), _failures(past), _runs(past), _waits(past)]


def _throughput(past: Past) -> Chart:
    good = [sums.succeeded for sums in past.sums]
    other = [sums.ended - sums.succeeded - sums.bad for sums in past.sums]
    bad = [sums.bad for sums in past.sums]
    columns = [("succeeded", good), ("other", other), ("bad", bad)]
    top = nice_top(max((sums.ended for sums in past.sums), default=0.0))
    total = past.total
    summary = _(
        "%(good)s succeeded, %(bad)s failed or lost, %(other)s snoozed, handed back or cancelled."
    ) % {
        "good": number(int(sum(good))),
        "bad": number(int(sum(bad))),
        "other": number(int(total.ended - sum(good) - sum(bad))),
    }
    legend = (("succeeded", _("succeeded")), ("bad", _("failed, lost")), ("other", _("other outcomes")))
    return _bars(past, "throughput", _("Attempts that ended"), summary, columns, top, legend)


def _failures(past: Past) -> Chart:
    failed, lost = [sums.failed for sums in past.sums], [sums.lost for sums in past.sums]
    top = nice_top(max((sums.bad for sums in past.sums), default=0.0))
    summary = _("%(failed)s failed by an error, %(lost)s were lost with their worker.") % {
        "failed": number(int(sum(failed))),
        "lost": number(int(sum(lost))),
    }
    legend = (("bad", _("failed")), ("lost", _("lost")))
    columns = [("bad", failed), ("lost", lost)]
    return _bars(past, "failures", _("Attempts that went wrong"), summary, columns, top, legend)


def _bars(
    past: Past,
    name: str,
    title: str,
    summary: str,
    columns: Sequence[tuple[str, Sequence[float]]],
    top: float,
    legend: tuple[tuple[str, str], ...],
) -> Chart:
    def told(index: int) -> str:
        counts = ", ".join(
            f"{dict(legend)[kind]}: {number(int(values[index]))}" for kind, values in columns if values[index]
        )
        return f"{clock(past.starts[index])}  {counts}" if counts else ""

    per = _("each bar %s") % duration_of_bin(past)
    return Chart(
        name, title, per, summary, number(int(top)) if top >= 1 else f"{top:g}", times_of(past),
        bars=stacked(columns, told, top), legend=legend,
    )  # fmt: skip


def _runs(past: Past) -> Chart:
    return _lines(past, "runs", _("Run time of attempts"), [times.runs for times in past.times])


def _waits(past: Past) -> Chart:
    title = _("Waiting time of first attempts, from due to begun")
    return _lines(past, "waits", title, [times.waits for times in past.times])


def _lines(past: Past, name: str, title: str, counts: Sequence[Sequence[int]]) -> Chart:
    half = [histograms.percentile(each, 0.5) for each in counts]
    most = [histograms.percentile(each, 0.95) for each in counts]
    top = _power_of_ten(max((value for value in most if value is not None), default=1.0))
    whole = [sum(column) for column in zip(*counts, strict=True)]
    summary = _("Half within %(half)s, 95 %% within %(most)s.") % {
        "half": _said(histograms.percentile(whole, 0.5)),
        "most": _said(histograms.percentile(whole, 0.95)),
    }
    legend = (("half", _("median")), ("most", _("95th percentile")))
    lines = tuple(
        Line(kind, label, path([None if v is None else on_log_scale(v, SHORTEST, top) for v in values]))
        for (kind, label), values in zip(legend, (half, most), strict=True)
    )
    covers = _("each step up is a multiple; interpolated in doubling buckets")
    told = summary if any(whole) else _("Nothing ended.")
    middle = duration(math.sqrt(top * SHORTEST))
    return Chart(name, title, covers, told, duration(top), times_of(past), middle, lines=lines, legend=legend)


def _power_of_ten(highest: float) -> float:
    return 10.0 ** max(math.ceil(math.log10(max(highest, SHORTEST))), -1)


def _said(seconds: float | None) -> str:
    return NOTHING if seconds is None else duration(seconds)


def depth_spark(values: Sequence[float]) -> Spark:
    """Return how many jobs were ready in a queue."""
    return _spark(values, lambda most: _("up to %s") % number(int(most)))


def age_spark(values: Sequence[float]) -> Spark:
    """Return how long the oldest ready job of a queue had waited."""
    return _spark(values, lambda most: _("up to %s") % age(most))


def _spark(values: Sequence[float], told: Callable[[float], str]) -> Spark:
    most = max(values, default=0.0)
    return Spark(area(values, nice_top(most), SPARK_WIDTH, SPARK_HEIGHT), told(most) if most else NOTHING)


def clock(moment: int, *, seconds: bool = False) -> str:
    """Return the time of day of a second of the epoch, in the reader's time zone."""
    local = datetime.fromtimestamp(moment, UTC).astimezone(timezone.get_current_timezone())
    return f"{local:%H:%M:%S}" if seconds else f"{local:%H:%M}"


def times_of(past: Past) -> tuple[str, ...]:
    """Return the times below a chart: its beginning, its middle, and now."""
    return clock(past.starts[0]), clock(past.starts[len(past.starts) // 2]), _("now")


def duration_of_bin(past: Past) -> str:
    """Return how long a bin is."""
    return _("%d min") % (past.window.span // 60)
