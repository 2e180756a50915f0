"""The page that asks first: before a cancel, and before anything that reaches beyond one page of the list.

It counts exactly what would be changed, by state, and shows the first few jobs.
"""

from collections import Counter
from collections.abc import Sequence
from heapq import nlargest
from typing import Any

from django.contrib.admin import helpers
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from django_pgqueue.models import Job

from . import telling
from .repairs import MOST_AT_ONCE, Repair
from .wording import number

CONFIRMED = "confirmed"
EXAMPLES = 10


def confirmation_page(
    request: HttpRequest,
    admin: Any,
    repair: Repair,
    jobs: QuerySet[Job],
    *,
    hidden: Sequence[tuple[str, Any]],
    back: str,
) -> TemplateResponse:
    """Return the page that asks whether ``repair`` shall be done to those of ``jobs`` that it applies to."""
    found = dict(eligible(repair, jobs).values_list("pk", "state__status")[: MOST_AT_ONCE + 1])
    taken = list(found.items())[:MOST_AT_ONCE]
    newest = nlargest(EXAMPLES, (pk for pk, _status in taken))
    context = {
        **admin.admin_site.each_context(request),
        "title": _("Are you sure?"),
        "subtitle": None,
        "opts": admin.opts,
        "media": admin.media,
        "repair": repair,
        "sentences": telling.plan(repair.name, Counter(status for _pk, status in taken)),
        "limit_note": _limit_note(len(found)),
        "button": telling.button(repair.name, len(taken)),
        "total": len(taken),
        "examples": jobs.model.objects.using(jobs.db)
        .only("pk", "task_path", "queue")
        .filter(pk__in=newest)
        .order_by("-pk"),
        "others": number(len(taken) - EXAMPLES) if len(taken) > EXAMPLES else "",
        "hidden": [*hidden, (CONFIRMED, "yes")],
        "back": back,
    }
    request.current_app = admin.admin_site.name
    return TemplateResponse(request, "admin/django_pgqueue/job/confirmation.html", context)


def eligible(repair: Repair, jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Return those of ``jobs`` that the repair applies to, in no order: sorting them would read them all."""
    return jobs.filter(state__status__in=sorted(repair.applies_to)).order_by()


def hidden_of_action(request: HttpRequest, name: str) -> list[tuple[str, Any]]:
    """Return the fields that make the list's action form come again."""
    selected = request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
    across = request.POST.get("select_across", "0")
    return [
        ("action", name),
        ("select_across", across),
        *((helpers.ACTION_CHECKBOX_NAME, pk) for pk in (selected[:1] if across == "1" else selected)),
    ]


def _limit_note(total: int) -> str:
    if total <= MOST_AT_ONCE:
        return ""
    return _("Only the first %s are taken at once; repeat for the others.") % number(MOST_AT_ONCE)
