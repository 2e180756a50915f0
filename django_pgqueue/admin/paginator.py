"""Pages over a table too large to count: one look, as far as ``LIMIT`` rows, gives the count and every page.

The look fetches ids only, in the list's order, so that an index alone can often answer it; the wide
rows are fetched for the page that is shown.
"""

from collections.abc import Sequence
from heapq import merge
from typing import TYPE_CHECKING, Any

from django.core.paginator import Page, Paginator
from django.utils.functional import cached_property

TIME = "state__finished_at"
LIMIT = 2_000
"""Forty pages.  A longer look makes PostgreSQL read whole indexes where a walk along one would do."""


if TYPE_CHECKING:
    _Paginator = Paginator[Any]
else:  # not generic at run time
    _Paginator = Paginator


class BoundedPaginator(_Paginator):
    """A Paginator that looks no further than ``LIMIT`` rows; filters reach those behind."""

    object_list: Any
    parts: Sequence[Any] = ()
    """The list in parts to be merged, each ordered by time and key from the last to the first."""

    @cached_property
    def keys(self) -> list[Any]:
        """Return the primary keys of the first rows, one more than can be paged through."""
        if not self.parts:
            return list(self.object_list.values_list("pk", flat=True)[: LIMIT + 1])
        looks = [part.values_list(TIME, "pk")[: LIMIT + 1] for part in self.parts]
        return [key for _time, key in merge(*looks, reverse=True)][: LIMIT + 1]

    @cached_property
    def count(self) -> int:
        """Return the number of rows that can be paged through."""
        return min(len(self.keys), LIMIT)

    @property
    def has_more(self) -> bool:
        """Return whether there are rows behind the last page."""
        return len(self.keys) > LIMIT

    def page(self, number: int | str) -> Page[Any]:
        """Return a page; its rows are fetched by key when they are used."""
        number = self.validate_number(number)
        start = (number - 1) * self.per_page
        keys = self.keys[start : min(start + self.per_page, self.count)]
        return Page(self.object_list.filter(pk__in=keys), number, self)
