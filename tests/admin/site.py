"""The admin as a visitor meets it: addresses, visitors, and what a page shows."""

import re
from html.parser import HTMLParser
from typing import Any

from django.contrib.auth.models import Permission, User
from django.http import HttpResponse
from django.test import Client

LIST = "/admin/django_pgqueue/job/"


def page_of(job_id: int) -> str:
    """Return the address of a job's page."""
    return f"{LIST}{job_id}/change/"


def button_of(job_id: int, name: str) -> str:
    """Return the address that a job's button posts to."""
    return f"{LIST}{job_id}/{name}/"


def visitor(*permissions: str, **options: Any) -> Client:
    """Return a client logged in as staff with these permissions on jobs."""
    user = User.objects.create_user(f"staff-{User.objects.count()}", is_staff=True, **options)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def text_of(response: HttpResponse) -> str:
    """Return the page of a response that is fine."""
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def act(client: Client, action: str, job_ids: list[int], query: str = "", **fields: Any) -> HttpResponse:
    """Select jobs in the list and run an action on them."""
    data = {"action": action, "_selected_action": job_ids, "select_across": "0", "index": "0"} | fields
    return client.post(LIST + query, {name: value for name, value in data.items() if value is not None})


def confirm(client: Client, action: str, query: str = "", **fields: Any) -> HttpResponse:
    """Say yes on the page that an action across all pages shows first."""
    options = {"select_across": "1", "index": None, "confirmed": "yes"} | fields
    return act(client, action, [0], query, **options)


def messages_of(client: Client) -> list[str]:
    """Return the messages that wait for the visitor, as text."""
    found = re.search(r'class="messagelist">(.*?)</ul>', text_of(client.get(LIST)), re.DOTALL)
    return [plain(item) for item in re.findall(r"<li[^>]*>(.*?)</li>", found[1], re.DOTALL)] if found else []


def rows_of_list(page: str) -> list[dict[str, str]]:
    """Return the rows of the list as texts by column."""
    body = re.search(r'id="result_list".*?<tbody>(.*)</tbody>', page, re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", body[1], re.DOTALL) if body else []
    cell = re.compile(r'<t[dh] class="(?:action-checkbox|field-([a-z_]+)[^"]*)">(.*?)</t[dh]>', re.DOTALL)
    return [{name: plain(inner) for name, inner in cell.findall(row) if name} for row in rows]


def ids_of_list(page: str) -> list[int]:
    """Return the ids of the jobs in the list, in its order."""
    return [int(row["id"]) for row in rows_of_list(page)]


def buttons_of(page: str) -> list[str]:
    """Return the labels of the buttons on a job's page."""
    return re.findall(r'<form method="post" action="[^"]*">.*?<button[^>]*>([^<]*)</button>', page, re.DOTALL)


def plain(html: str) -> str:
    """Return what a person reads."""
    reader = _Reader()
    reader.feed(html)
    return " ".join("".join(reader.parts).split())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("span", "wbr", "strong", "a"):
            self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


class Tags(HTMLParser):
    """All elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
