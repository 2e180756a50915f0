"""What the operator is told before and after a repair, in numbers."""

from collections import Counter
from collections.abc import Callable, Mapping

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_pgqueue import states
from django_pgqueue.bulk import BulkOperation

from .wording import number

# --- before


def plan(name: str, by_status: Mapping[str, int]) -> list[str]:
    """Return what will become of how many jobs, given how many there are in each state."""
    total = sum(by_status.values())
    running = by_status.get(states.RUNNING, 0)
    if name == "retry":
        return [_retry_plan(total)] if total else []
    if name == "run-now":
        return [_run_plan(total)] if total else []
    if name == "discard":
        return [_discard_plan(total)] if total else []
    waiting = total - running
    return [*([_cancel_plan(waiting)] if waiting else []), *([_stop_plan(running)] if running else [])]


def button(name: str, count: int) -> str:
    """Return the label of the button that does it."""
    texts = {
        "retry": ngettext("Yes, retry %s job", "Yes, retry %s jobs", count),
        "cancel": ngettext("Yes, cancel %s job", "Yes, cancel %s jobs", count),
        "run-now": ngettext("Yes, run %s job now", "Yes, run %s jobs now", count),
        "discard": ngettext("Yes, discard %s job", "Yes, discard %s jobs", count),
    }
    return texts[name] % number(count)


def _retry_plan(count: int) -> str:
    return ngettext(
        "%s dead or cancelled job will become ready at the end of its queue, with fresh attempts.",
        "%s dead or cancelled jobs will become ready at the end of their queues, with fresh attempts.",
        count,
    ) % number(count)


def _run_plan(count: int) -> str:
    return ngettext(
        "%s scheduled job will become ready now, at the end of its queue.",
        "%s scheduled jobs will become ready now, at the end of their queues.",
        count,
    ) % number(count)


def _discard_plan(count: int) -> str:
    return ngettext(
        "%s dead or cancelled job will be deleted, with its attempts. Nothing brings it back.",
        "%s dead or cancelled jobs will be deleted, with their attempts. Nothing brings them back.",
        count,
    ) % number(count)


def _cancel_plan(count: int) -> str:
    return ngettext(
        "%s waiting job will be cancelled at once.", "%s waiting jobs will be cancelled at once.", count
    ) % number(count)


def _stop_plan(count: int) -> str:
    return ngettext(
        "%s running job will be asked to stop; it ends when its task or its worker gives way.",
        "%s running jobs will be asked to stop; they end when their tasks or workers give way.",
        count,
    ) % number(count)


# --- after


def told(counts: Counter[str]) -> str:
    """Return what happened: "12 jobs retried, 3 skipped because they are not dead or cancelled."."""
    parts = [text(counts[key]) % {"count": number(counts[key])} for key, text in _TOLD.items() if counts[key]]
    return ", ".join(parts) + "." if parts else _("There was nothing to do.")


DONE_IN_BULK = {"retry": "retried", "discard": "discarded", "cancel": "cancelled", "run-now": "made_ready"}
SKIPPED_IN_BULK = {"retry": "not_over", "discard": "not_over", "cancel": "over", "run-now": "not_scheduled"}


def of_bulk(operation: BulkOperation) -> Counter[str]:
    """Return what a bulk operation did, by the names that ``told`` knows."""
    return Counter(
        {
            DONE_IN_BULK[operation.kind]: operation.changed,
            SKIPPED_IN_BULK[operation.kind]: operation.skipped,
            "conflicts": operation.conflicts,
        }
    )


def succeeded(counts: Counter[str]) -> bool:
    """Return whether any job was changed."""
    return any(counts[key] for key in ("retried", "cancelled", "asked", "made_ready", "discarded"))


_TOLD: dict[str, Callable[[int], str]] = {
    "retried": lambda n: ngettext("%(count)s job retried", "%(count)s jobs retried", n),
    "cancelled": lambda n: ngettext("%(count)s job cancelled", "%(count)s jobs cancelled", n),
    "asked": lambda n: ngettext(
        "%(count)s running job asked to stop", "%(count)s running jobs asked to stop", n
    ),
    "made_ready": lambda n: ngettext("%(count)s job made ready", "%(count)s jobs made ready", n),
    "discarded": lambda n: ngettext("%(count)s job discarded", "%(count)s jobs discarded", n),
    "not_over": lambda n: ngettext(
        "%(count)s skipped because it is not dead or cancelled",
        "%(count)s skipped because they are not dead or cancelled",
        n,
    ),
    "over": lambda n: ngettext(
        "%(count)s skipped because it has ended", "%(count)s skipped because they have ended", n
    ),
    "not_scheduled": lambda n: ngettext(
        "%(count)s skipped because it is not scheduled", "%(count)s skipped because they are not scheduled", n
    ),
    "conflicts": lambda n: ngettext(
        "%(count)s conflicts with a live job of the same unique key",
        "%(count)s conflict with live jobs of the same unique keys",
        n,
    ),
}
