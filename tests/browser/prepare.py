"""``python -m tests.browser.prepare``: tables, crystals, customers, and those who log in.

A process of its own: the tests' process runs under other settings than the shop.
"""

import json

import django
from django.core.management import call_command

from .people import BOSS, PASSWORD, SESSIONS, VIEWER


def main() -> None:
    """Fill the databases that the environment names."""
    django.setup()
    call_command("migrate", verbosity=0)
    call_command("migrate", database="outside", verbosity=0)
    call_command("stock_shop", verbosity=0)

    from django.conf import settings  # noqa: PLC0415 - like the next, needs the set-up
    from django.contrib.auth.models import Permission, User  # noqa: PLC0415

    boss = User.objects.create_superuser(BOSS, "boss@example.com", PASSWORD)
    viewer = User.objects.create_user(VIEWER, "viewer@example.com", PASSWORD, is_staff=True)
    viewer.user_permissions.set(Permission.objects.filter(codename="view_job"))
    sessions = {user.get_username(): _session(user) for user in (boss, viewer)}
    (settings.SHOP_FOLDER / SESSIONS).write_text(json.dumps(sessions))


def _session(user: object) -> str:
    """Log in as the form does, and return the value of the cookie."""
    from django.test import Client  # noqa: PLC0415 - needs the set-up

    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


if __name__ == "__main__":
    main()
