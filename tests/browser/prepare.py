"""``python -m tests.browser.prepare``: tables, crystals, customers, and those who log in.

A process of its own: the tests' process runs under other settings than the shop.
"""

import django
from django.core.management import call_command

from .people import BOSS, PASSWORD, VIEWER


def main() -> None:
    """Fill the databases that the environment names."""
    django.setup()
    call_command("migrate", verbosity=0)
    call_command("migrate", database="outside", verbosity=0)
    call_command("stock_shop", verbosity=0)

    from django.contrib.auth.models import Permission, User  # noqa: PLC0415 - needs the set-up

    User.objects.create_superuser(BOSS, "boss@example.com", PASSWORD)
    viewer = User.objects.create_user(VIEWER, "viewer@example.com", PASSWORD, is_staff=True)
    viewer.user_permissions.set(Permission.objects.filter(codename="view_job"))


if __name__ == "__main__":
    main()
