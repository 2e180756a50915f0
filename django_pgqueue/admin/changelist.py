"""The list of jobs: a walk along an index, page by page, and an honest word on how many there are.

There is no OFFSET and no count over the table: a page begins behind the place that its address names, and
it looks at a bounded number of rows for those that match.  What it did not look at is said, with a link to
go on.
"""

import json
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.templatetags.admin_list import result_headers
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.views.main import ORDER_VAR, SEARCH_VAR, ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_pgqueue import states
from django_pgqueue.listing import Walk
from django_pgqueue.models import Job
from django_pgqueue.selecting import (
    BY_CAUSE,
    BY_END,
    BY_ID,
    BY_TASK,
    JobFilter,
    Place,
    place_as_json,
    place_from_json,
)

from . import rows
from .filters import PLACE_VARS
from .wording import number

AFTER, BEFORE = PLACE_VARS
OLDEST_FIRST = "1"
"""The value of the parameter of order that turns a list by id around."""
TURNABLE = (BY_ID, BY_TASK)


class JobChangeList(ChangeList):
    """Newest first by id; a filter whose index has another order brings that order with it."""

    filter_specs: list[Any]
    model_admin: Any
    asked: JobFilter
    walked: Walk

    # --- what is asked for

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        """Return the parameters that are filters: a place in the list is none."""
        found: dict[str, Any] = super().get_filters_params(params)
        return {name: value for name, value in found.items() if name not in PLACE_VARS}

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        """Return a query string of another list: it begins at its first page."""
        return super().get_query_string(new_params, [*(remove or ()), *PLACE_VARS])

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        """Find out what is asked for; return all jobs, of which an action picks those that were ticked."""
        self.filter_specs, self.has_filters, rest, _twins, self.has_active_filters = self.get_filters(request)
        if rest:
            refuse(request, sorted(rest))
        asked = JobFilter()
        specs: list[Any] = self.filter_specs
        for spec in specs:
            asked = spec.narrow(asked)
        self.asked = self.model_admin.search(
            request, asked, self.query, "\x00" in request.GET.get(SEARCH_VAR, "")
        )
        self.clear_all_filters_qs = self.get_query_string(remove=list(self.get_filters_params()))
        if self.asked.order not in TURNABLE:
            self.sortable_by = ()
        return self.root_queryset

    def get_ordering_field_columns(self) -> dict[int, Any]:
        """Return which column heads show an arrow: the id's, in a list that goes by it."""
        if self.asked.order not in TURNABLE:
            return {}
        return {1: "asc" if self.turned else "desc"}

    @property
    def turned(self) -> bool:
        """Return whether the list goes by id from the first job on."""
        return self.asked.order in TURNABLE and self.params.get(ORDER_VAR) == OLDEST_FIRST

    # --- its rows

    def get_results(self, request: HttpRequest) -> None:
        """Walk to the page, and fetch its rows with their last errors."""
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = True
        self.can_show_all = self.multi_page = False
        self.result_list: list[Job] = []
        self.result_count = 0
        if request.method != "POST":  # an action needs no rows
            self._walk(request)
            self.result_list = self._rows()
            self.result_count = len(self.result_list)

    def _walk(self, request: HttpRequest) -> None:
        after, before = (self._place(request, name) for name in PLACE_VARS)
        self.goes_back = before is not None
        self.begins = after is None and before is None
        self.walked = self._stretch(before if self.goes_back else after)
        if self.goes_back and self.walked.end is None:  # a full first page instead of what is left of it
            self.goes_back, self.begins = False, True
            self.walked = self._stretch(None)

    def _stretch(self, place: Place | None) -> Walk:
        return Job.objects.walk(
            self.asked,
            limit=self.list_per_page,
            place=place,
            backwards=self.goes_back != self.turned,
        )

    def _place(self, request: HttpRequest, name: str) -> Place | None:
        if name not in request.GET or not self.asked.can_match:
            return None
        try:
            return place_from_json(self.asked.order, json.loads(f"[{request.GET[name]}]"))
        except (ValueError, RecursionError):
            raise IncorrectLookupParameters(name) from None

    def _rows(self) -> list[Job]:
        job_ids = self.walked.job_ids
        found = {job.pk: job for job in self.root_queryset.filter(pk__in=job_ids)} if job_ids else {}
        errors = Job.objects.last_errors(job_ids) if job_ids else {}
        jobs = [found[job_id] for job_id in job_ids if job_id in found]  # others were pruned a moment ago
        for job in jobs:
            job.last_error = errors.get(job.pk)
        return jobs[::-1] if self.goes_back else jobs

    @property
    def heads(self) -> list[dict[str, Any]]:
        """Return the heads of the columns."""
        return list(result_headers(self))

    @property
    def rows(self) -> SafeString:
        """Return the rows of the table."""
        return rows.rows(self.result_list, self)

    def link_for_result(self, job: Job) -> str:
        """Return the address of a job's page, with the filters to come back to; one look-up for all rows."""
        return self._address_of_zero.replace("/0/", f"/{job.pk}/", 1)

    @cached_property
    def _address_of_zero(self) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        address = reverse(name, args=[0], current_app=self.model_admin.admin_site.name)
        return add_preserved_filters(
            {"preserved_filters": self.preserved_filters, "opts": self.opts}, address
        )

    # --- the way to the other pages

    @property
    def newer(self) -> str:
        """Return the query string of the page before this one; empty on the first."""
        if self.begins:
            return ""
        if self.goes_back:
            return self._page(BEFORE, self.walked.end)
        return self._page(BEFORE, self.walked.places[0]) if self.walked.places else self.first

    @property
    def older(self) -> str:
        """Return the query string of the page after this one; empty on the last."""
        if not self.goes_back:
            return self._page(AFTER, self.walked.end)
        return self._page(AFTER, self.walked.places[0]) if self.walked.places else ""

    @property
    def first(self) -> str:
        """Return the query string of the first page."""
        return self.get_query_string()

    def _page(self, name: str, place: Place | None) -> str:
        if place is None:
            return ""
        text = json.dumps(place_as_json(place), separators=(",", ":"))[1:-1]
        query = self.get_query_string()
        return f"{query}{'&' if len(query) > 1 else ''}{urlencode({name: text})}"

    @property
    def stopped_looking(self) -> bool:
        """Return whether the page ends because enough rows were looked at, not because it is full."""
        return self.walked.end is not None and not self.walked.is_full

    @property
    def kept_params(self) -> list[tuple[str, str]]:
        """Return the parameters that a search keeps."""
        return [(name, value) for name, value in self.params.items() if name not in (*PLACE_VARS, SEARCH_VAR)]

    # --- words

    @property
    def order_note(self) -> str:
        """Return the order in words when it is not the usual one."""
        return {
            BY_CAUSE: _("Ended last first."),
            BY_END: _("Ended last first."),
            states.SCHEDULED: _("Due next first."),
            states.READY: _("In the order of the queues: what is taken next comes first."),
            states.RUNNING: _("Running longest first."),
        }.get(self.asked.order, "")

    @property
    def look_note(self) -> str:
        """Return how far the page looked when it did not look at everything."""
        if not self.stopped_looking:
            return ""
        return _("%s jobs were looked at for this page; the list goes on behind them.") % number(
            self.walked.looked
        )

    @property
    def unreadable(self) -> list[str]:
        """Return the titles of the filters whose values could not be read, and which so find nothing."""
        forms = [(spec.title, spec.form) for spec in self.filter_specs if hasattr(spec, "form")]
        return [title for title, form in forms if form.is_bound and not form.is_valid()]

    @cached_property
    def count_text(self) -> str:
        """Return how many jobs match, never claiming to have counted further than was looked."""
        is_all = self.begins and self.walked.end is None
        if self.asked.is_empty:
            estimate = Job.objects.estimate() or 0  # asked in any case: a page always takes the same queries
            return _jobs(len(self.walked.job_ids)) if is_all else _("about %s jobs") % number(estimate)
        if not self.can_count:
            seen = len(self.walked.job_ids)
            if is_all:
                return _jobs(seen)
            return _("more than %s jobs") % number(seen) if self.begins and self.walked.is_full else ""
        count, is_all = Job.objects.count_up_to(self.asked)
        return _jobs(count) if is_all else _("more than %s jobs") % number(count)

    @property
    def can_count(self) -> bool:
        """Return whether an index answers all that is asked, so that counting is cheap."""
        return Job.objects.is_counted_by_index(self.asked)

    @property
    def reaches_beyond(self) -> bool:
        """Return whether more jobs match than this page shows."""
        return not self.begins or self.walked.end is not None

    @property
    def select_all_text(self) -> str:
        """Return the label of "select everything that matches"."""
        return _("Select all jobs that match, on all pages")


def refuse(request: HttpRequest, names: list[str]) -> None:
    """Tell that jobs cannot be filtered by these names, and raise IncorrectLookupParameters."""
    messages.warning(
        request,
        _("Jobs cannot be filtered by %s: no index answers that. Use the filters beside the list.")
        % ", ".join(name[:50] for name in names),
    )
    raise IncorrectLookupParameters(", ".join(names))


def _jobs(count: int) -> str:
    return ngettext("%s job", "%s jobs", count) % number(count)
