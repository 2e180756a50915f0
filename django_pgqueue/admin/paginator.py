"""Pages over a table too large to count: one look, as far as ``LIMIT`` rows, gives the count and every page.

The look fetches ids only, in the list's order, so that an index alone can often answer it; the wide
rows are fetched for the page that is shown.
"""

from typing import Any

from django.core.paginator import Page, Paginator
from django.utils.functional import cached_property

LIMIT = 10_000


class BoundedPaginator(Paginator):
    """A Paginator that looks no further than ``LIMIT`` rows; filters reach those behind."""

    object_list: Any

    @cached_property
    def keys(self) -> list[Any]:
        """Return the primary keys of the first rows, one more than can be paged through."""
        return list(self.object_list.values_list("pk", flat=True)[: LIMIT + 1])

    @cached_property
    def count(self) -> int:
        """Return the number of rows that can be paged through."""
        return min(len(self.keys), LIMIT)

    @property
    def has_more(self) -> bool:
        """Return whether there are rows behind the last page."""
        return len(self.keys) > LIMIT

    def page(self, number: int | str) -> Page:
        """Return a page; its rows are fetched by key when they are used."""
        number = self.validate_number(number)
        start = (number - 1) * self.per_page
        keys = self.keys[start : min(start + self.per_page, self.count)]
        return Page(self.object_list.filter(pk__in=keys), number, self)
