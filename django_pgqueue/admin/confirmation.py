"""The page that asks first: before a cancel, a discard, and anything that reaches beyond the ticked jobs.

It counts exactly what would be changed, by state, and shows the first few jobs.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from django.contrib.admin import helpers
from django.db import router
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from django_pgqueue.carrying import statuses_of
from django_pgqueue.models import Job, JobState
from django_pgqueue.selecting import JobFilter

from . import describing, telling
from .repairs import Repair
from .wording import number

CONFIRMED = "confirmed"
EXAMPLES = 10
COUNTED = 1_000_000
"""A preview counts the jobs that a bulk operation would change up to here."""


def ask_about(
    request: HttpRequest,
    admin: Any,
    repair: Repair,
    job_ids: Sequence[int],
    *,
    hidden: Sequence[tuple[str, Any]],
    back: str,
) -> TemplateResponse:
    """Return the page that asks whether ``repair`` shall be done to those of these jobs that it fits."""
    states = JobState.objects.using(router.db_for_write(Job)).filter(
        pk__in=job_ids, status__in=sorted(repair.applies_to)
    )
    found = dict(states.values_list("pk", "status"))
    return _page(
        request,
        admin,
        repair,
        counts=Counter(found.values()),
        examples=sorted(found, reverse=True)[:EXAMPLES],
        hidden=hidden,
        back=back,
    )


def ask_about_all(
    request: HttpRequest,
    admin: Any,
    repair: Repair,
    asked: JobFilter,
    *,
    hidden: Sequence[tuple[str, Any]],
    back: str,
) -> TemplateResponse:
    """Return the page that asks whether ``repair`` shall be done to all jobs that a filter means."""
    counts, is_all = preview(repair, asked)
    examples: list[int] = []
    for status in statuses_of(repair.name, asked):
        if counts[status] and len(examples) < EXAMPLES:
            examples += Job.objects.walk(asked.within(status), limit=EXAMPLES - len(examples)).job_ids
    return _page(
        request,
        admin,
        repair,
        counts=counts,
        examples=examples,
        hidden=[*hidden, ("token", uuid4())],
        back=back,
        is_bulk=True,
        asked=describing.words(asked),
        limit_note="" if is_all else _("There are more; they were counted up to here."),
    )


def preview(repair: Repair, asked: JobFilter) -> tuple[Counter[str], bool]:
    """Return how many jobs of each state the repair would change now, and whether all were counted."""
    counts: Counter[str] = Counter()
    all_counted = True
    for status in statuses_of(repair.name, asked):
        counts[status], is_all = Job.objects.count_up_to(asked.within(status), COUNTED, look=COUNTED)
        all_counted = all_counted and is_all
    return counts, all_counted


def _page(
    request: HttpRequest,
    admin: Any,
    repair: Repair,
    *,
    counts: Counter[str],
    examples: Sequence[int],
    hidden: Sequence[tuple[str, Any]],
    back: str,
    is_bulk: bool = False,
    asked: Sequence[tuple[str, str]] = (),
    limit_note: str = "",
) -> TemplateResponse:
    total = sum(counts.values())
    jobs = Job.objects.using(router.db_for_write(Job)).only("pk", "task_path", "queue").in_bulk(examples)
    context = {
        **admin.admin_site.each_context(request),
        "title": _("Are you sure?"),
        "subtitle": None,
        "opts": admin.opts,
        "media": admin.media,
        "repair": repair,
        "sentences": telling.plan(repair.name, counts),
        "limit_note": limit_note,
        "button": telling.button(repair.name, total),
        "total": total,
        "is_bulk": is_bulk,
        "asked": asked,
        "examples": [jobs[job_id] for job_id in examples if job_id in jobs],
        "others": number(total - len(examples)) if total > len(examples) else "",
        "hidden": [*hidden, ("expected", total), (CONFIRMED, "yes")],
        "back": back,
    }
    request.current_app = admin.admin_site.name
    return TemplateResponse(request, "admin/django_pgqueue/job/confirmation.html", context)


def hidden_of_action(request: HttpRequest, name: str) -> list[tuple[str, Any]]:
    """Return the fields that make the list's action form come again."""
    selected = request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
    across = request.POST.get("select_across", "0")
    return [
        ("action", name),
        ("select_across", across),
        *((helpers.ACTION_CHECKBOX_NAME, pk) for pk in (selected[:1] if across == "1" else selected)),
    ]
