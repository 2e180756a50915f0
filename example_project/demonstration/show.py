"""The demo from beginning to end, once its surroundings are there."""

import secrets
import time
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command

from example_project.outside.router import DATABASE as OUTSIDE
from example_project.shop.models import Customer, Product

from . import disaster, ordering, summary, verdict
from .evidence import Evidence
from .faults import DemoFailed, Interrupted, say
from .progress import Snapshot, Ticker, work_is_left
from .services import Services, free_port

USER = "admin"
PROCESSES = 2
PATIENCE = 240.0
"""Seconds from the last order until every job must have ended."""


def run(services: Services, folder: Path, *, orders: int, serve: bool) -> int:
    """Run the show and return its exit status.  Raises DemoFailed."""
    began = time.monotonic()
    site, password = _open(services)
    plan = ordering.wishes(orders)
    ticker = Ticker()
    references, victim = _trade(services, site, plan, ticker)
    _wait_for_the_end(services, ticker)
    statuses = {} if serve else services.stop()
    seen = Evidence.gather()
    checks = [*verdict.checks(plan, references, victim, seen), *verdict.endings(statuses)]
    summary.show(checks, seen, time.monotonic() - began)
    summary.show_where_to_look(folder, f"{site}/orders/{references[0]}/" if serve else "")
    if serve:
        _keep_open(services, site, password)
    return 0 if all(check.passed for check in checks) else 1


def _open(services: Services) -> tuple[str, str]:
    """Fill the databases and start everything; return the site's address and the admin's password."""
    call_command("migrate", verbosity=0)
    call_command("migrate", database=OUTSIDE, verbosity=0)
    call_command("stock_shop", verbosity=0)
    say(f"The shop has {Product.objects.count()} crystals and {Customer.objects.count()} customers.")
    password = secrets.token_urlsafe(9)
    get_user_model().objects.create_superuser(USER, "admin@example.com", password)
    site = f"http://{settings.LOOPBACK}:{free_port()}"
    services.start("outside", "outside_world")
    services.start("site", "runserver", "--noreload", site.removeprefix("http://"))
    services.start("workers", "runworkers", "--processes", str(PROCESSES))
    services.wait_for(f"{settings.OUTSIDE_URL}/rates/EUR/USD")
    services.wait_for(site)
    say(f"Up: the site {site}, a worker of {PROCESSES} processes, and the servers that the jobs talk to.")
    return site, password


def _trade(
    services: Services, site: str, plan: list[ordering.Wish], ticker: Ticker
) -> tuple[list[str], disaster.Victim]:
    """Place the orders while the worker runs, and kill one of its processes half-way."""
    say(f"Placing {len(plan)} orders, {ordering.EXCESSIVE} of them for more than there is in stock.")
    references: list[str] = []
    victim = None
    for reference in ordering.place(plan, site, ticker.tick):
        references.append(reference)
        if victim is None and len(references) >= len(plan) // 2:
            victim = disaster.kill_a_working_child(services)
            ticker.interrupt(f"kill -9 {victim.pid}: a worker process with jobs {victim.shown} in its hands.")
        services.check()
    assert victim is not None, "half of the plan was placed"
    return references, victim


def _wait_for_the_end(services: Services, ticker: Ticker) -> None:
    deadline = time.monotonic() + PATIENCE
    while work_is_left():
        if time.monotonic() > deadline:
            raise DemoFailed(f"After {PATIENCE:.0f} s there still are unfinished jobs: {Snapshot.take()}")
        services.check()
        ticker.tick()
        time.sleep(0.2)
    ticker.close()


def _keep_open(services: Services, site: str, password: str) -> None:
    """Stay until Ctrl-C or SIGTERM, which is how a serving demo ends well."""
    say(f"\nThe shop stays open: {site}")
    say(f"Admin: {site}/admin/  user: {USER}  password: {password}")
    say("Ctrl-C ends it.")
    try:
        while True:
            services.check()
            time.sleep(0.5)
    except Interrupted:
        say("\nClosing.")
