"""Who may do what: to look is one permission, each repair another, and a GET changes nothing. (C68)"""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from tests.support import make, status_of

from .site import LIST, act, button_of, confirm, page_of, text_of, visitor

pytestmark = pytest.mark.django_db

REPAIRS = [
    ("retry", "retry_selected", "retry_job", "dead", "ready"),
    ("cancel", "cancel_selected", "cancel_job", "ready", "cancelled"),
    ("run-now", "run_selected_now", "run_job", "scheduled", "ready"),
]
OTHERS = {"retry_job", "cancel_job", "run_job"}


@pytest.mark.parametrize(("name", "action", "permission", "status", "after"), REPAIRS)
def test_each_repair_needs_its_own_permission(
    name: str, action: str, permission: str, status: str, after: str
) -> None:
    job_id = make(status).job_id
    outsider = visitor("view_job", *(OTHERS - {permission}))
    assert outsider.post(button_of(job_id, name), {"confirmed": "yes"}).status_code == 403
    assert act(outsider, action, [job_id], confirmed="yes").status_code == 403
    assert confirm(outsider, action).status_code == 403
    assert status_of(job_id) == status
    assert f'value="{action}"' not in text_of(outsider.get(LIST))
    assert not LogEntry.objects.exists()
    insider = visitor("view_job", permission)
    assert f'value="{action}"' in text_of(insider.get(LIST))
    assert act(insider, action, [job_id], confirmed="yes").status_code == 302
    assert status_of(job_id) == after


@pytest.mark.parametrize(("name", "action", "permission", "status", "after"), REPAIRS)
def test_repair_needs_the_permission_to_look_too(
    name: str, action: str, permission: str, status: str, after: str
) -> None:
    job_id = make(status).job_id
    blind = visitor(permission)
    assert blind.post(button_of(job_id, name), {"confirmed": "yes"}).status_code == 403
    assert act(blind, action, [job_id], confirmed="yes").status_code == 403
    assert status_of(job_id) == status


@pytest.mark.parametrize(("name", "action", "permission", "status", "after"), REPAIRS)
def test_get_changes_nothing(
    boss: Client, name: str, action: str, permission: str, status: str, after: str
) -> None:
    job_id = make(status).job_id
    for response in (
        boss.get(button_of(job_id, name)),
        boss.get(button_of(job_id, name), {"confirmed": "yes"}),
    ):
        assert response.status_code == 405
    assert boss.head(button_of(job_id, name)).status_code == 405
    query = {
        "action": action,
        "_selected_action": job_id,
        "confirmed": "yes",
        "index": "0",
        "select_across": "1",
    }
    assert boss.get(LIST, query).status_code == 400
    assert status_of(job_id) == status


@pytest.mark.parametrize(("name", "action", "permission", "status", "after"), REPAIRS)
def test_post_without_a_csrf_token_is_refused(
    name: str, action: str, permission: str, status: str, after: str
) -> None:
    job_id = make(status).job_id
    User.objects.create_superuser("boss")
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get())
    assert client.post(button_of(job_id, name), {"confirmed": "yes"}).status_code == 403
    assert act(client, action, [job_id], confirmed="yes").status_code == 403
    assert status_of(job_id) == status


@pytest.mark.parametrize("address", [LIST, "page", "history"])
def test_looking_needs_the_permission_to_look(address: str) -> None:
    job_id = make("dead").job_id
    address = {"page": page_of(job_id), "history": f"{LIST}{job_id}/history/"}.get(address, address)
    assert visitor(*OTHERS).get(address).status_code == 403
    assert visitor("view_job").get(address).status_code == 200
    assert Client().get(address).status_code == 302


def test_buttons_of_strangers_lead_to_the_login() -> None:
    job_id = make("dead").job_id
    assert "/login/" in Client().post(button_of(job_id, "retry")).headers["Location"]
    assert status_of(job_id) == "dead"
