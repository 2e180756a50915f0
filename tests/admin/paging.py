"""The way from page to page of the list, as a visitor follows it."""

import html
import re

from django.test import Client

from .site import LIST, ids_of_list, text_of


def link(page: str, label: str) -> str:
    """Return the address behind a link of the paginator; empty when there is none."""
    found = re.search(rf'<a href="([^"]*)"[^>]*>{label}</a>', page)
    return LIST + html.unescape(found[1]) if found else ""


def walk_through(client: Client, query: str, label: str = "Next") -> list[list[int]]:
    """Return the ids of each page, from the first one on."""
    pages, address = [], LIST + query
    while address:
        page = text_of(client.get(address))
        pages.append(ids_of_list(page))
        address = link(page, label) or link(page, "Look further")
    return pages
