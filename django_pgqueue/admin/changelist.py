"""The list of jobs: its order, its last errors, and an honest word on how many there are."""

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ORDER_VAR, SEARCH_VAR, ChangeList
from django.core.paginator import InvalidPage
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_pgqueue.models import Job

from .paginator import LIMIT, BoundedPaginator
from .wording import number


class JobChangeList(ChangeList):
    """Newest first by id; a filter whose index has another order brings that order with it."""

    paginator: BoundedPaginator
    filter_specs: list[Any]

    @cached_property
    def filter_order(self) -> tuple[str, ...]:
        """Return the order that an active filter asks for, empty without one."""
        orders = [spec.order() for spec in self.filter_specs if hasattr(spec, "order")]
        return next((order for order in orders if order), ())

    @property
    def parts(self) -> list[QuerySet[Any]]:
        """Return the list in the parts that an active filter asks for, empty without one."""
        asking = [spec for spec in self.filter_specs if hasattr(spec, "parts")]
        return next((parts for spec in asking if (parts := spec.parts(self.queryset))), [])

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        """Return the jobs that match; none for a search that the form refused, which Django would ignore."""
        queryset = super().get_queryset(request, exclude_parameters)
        return queryset.none() if "\x00" in request.GET.get(SEARCH_VAR, "") else queryset

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        """Return the order that an index can give; any other would sort millions of rows."""
        if self.filter_order:
            self.sortable_by = ()
            self.params.pop(ORDER_VAR, None)
            return list(self.filter_order)
        return super().get_ordering(request, queryset)

    def get_ordering_field_columns(self) -> dict[int, Any]:
        """Return which column heads show an arrow."""
        return {} if self.filter_order else super().get_ordering_field_columns()

    def get_results(self, request: HttpRequest) -> None:
        """Look once, as far as the paginator looks, and fetch the rows of the page with their last errors."""
        paginator: Any = self.model_admin.get_paginator(request, self.queryset, self.list_per_page)
        paginator.parts = self.parts
        self.paginator = paginator
        self.result_count = paginator.count
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = True
        self.can_show_all = False
        self.multi_page = paginator.num_pages > 1
        self.result_list: Sequence[Job] = []
        if request.method != "POST":  # an action needs no rows
            self.result_list = self._rows()

    def _rows(self) -> list[Job]:
        try:
            jobs = list(self.paginator.page(self.page_num if self.multi_page else 1).object_list)
        except InvalidPage:
            raise IncorrectLookupParameters from None
        errors = Job.objects.last_errors([job.pk for job in jobs]) if jobs else {}
        for job in jobs:
            job.last_error = errors.get(job.pk)
        return jobs

    @property
    def order_note(self) -> str:
        """Return the order in words when it is not the usual one."""
        if not self.filter_order:
            return ""
        return _("Due next first.") if self.filter_order[0] == "state__run_at" else _("Ended last first.")

    @property
    def unreadable(self) -> list[str]:
        """Return the titles of the filters whose values could not be read, and which so find nothing."""
        forms = [(spec.title, spec.form) for spec in self.filter_specs if hasattr(spec, "form")]
        return [title for title, form in forms if form.is_bound and not form.is_valid()]

    @cached_property
    def count_text(self) -> str:
        """Return how many jobs match, never claiming to have counted further than was looked."""
        if not self.paginator.has_more:
            count = self.paginator.count
            return ngettext("%s job", "%s jobs", count) % number(count)
        if not self.has_active_filters and not self.query:
            estimate = Job.objects.estimate() or 0
            if estimate > LIMIT:
                return _("about %s jobs") % number(estimate)
        return _("more than %s jobs") % number(LIMIT)

    @property
    def limit_note(self) -> str:
        """Return what to do about the jobs behind the last page."""
        if not self.paginator.has_more:
            return ""
        return _("The pages end at %s jobs; filters reach the others.") % number(LIMIT)

    @property
    def select_all_text(self) -> str:
        """Return the label of "select everything that matches"."""
        if self.paginator.has_more:
            return _("Select all jobs that match, on all pages")
        return _("Select all %s") % self.count_text
