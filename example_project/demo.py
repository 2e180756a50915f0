"""``python -m example_project.demo``: the whole shop at work, hit with kill -9, and every effect counted.

    --serve       keep the site, the admin and the workers up afterwards, until Ctrl-C
    --orders N    how many orders to place (300 or more)

It starts PostgreSQL (or uses DATABASE_URL, in a database of its own), the site, the workers and the
servers they talk to; places the orders over HTTP; kills a working worker; waits until every job has
ended; and compares what arrived with what must have.  Exit status: 0 if all of it is as it must be, 1 if
something is not, 128 + N after signal N.  All files are in ``.demo`` in the clone.
"""

import argparse
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

CLONE = Path(__file__).resolve().parent.parent
if str(CLONE) not in sys.path:  # started as a file, not with -m
    sys.path.insert(0, str(CLONE))

from example_project.demonstration.faults import DemoFailed, Interrupted, end_on_signals, say  # noqa: E402
from example_project.demonstration.services import Services, free_port  # noqa: E402
from example_project.demonstration.workspace import database, server_version, workspace  # noqa: E402

LEAST_ORDERS = 300


def main(arguments: list[str] | None = None) -> int:
    """Run the demo and return its exit status."""
    options = _options(arguments)
    end_on_signals()
    try:
        with _surroundings() as (services, folder):
            # Models can be imported only now that the surroundings have named the databases.
            from example_project.demonstration import show

            return show.run(services, folder, orders=options.orders, serve=options.serve)
    except DemoFailed as failure:
        say(f"\nThe demo failed: {failure}")
        return 1
    except Interrupted as signal:
        say(f"\nStopped by {signal}; nothing is left running.")
        return signal.exit_status


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="example_project.demo", description="Run the example shop and check it."
    )
    parser.add_argument("--serve", action="store_true", help="keep the site and the workers up until Ctrl-C")
    parser.add_argument("--orders", type=int, default=320, help="how many orders to place (default: 320)")
    options = parser.parse_args(arguments)
    if options.orders < LEAST_ORDERS:
        parser.error(f"--orders must be {LEAST_ORDERS} or more, not {options.orders}")
    return options


@contextmanager
def _surroundings() -> Iterator[tuple[Services, Path]]:
    """Make a folder and a database, point the shop's settings at them, and end all that was started."""
    with ExitStack() as stack:
        folder = stack.enter_context(workspace())
        url = stack.enter_context(database())
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "example_project.settings",
            "DATABASE_URL": url,
            "SHOP_FOLDER": str(folder),
            "OUTSIDE_HTTP_PORT": str(free_port()),
            "OUTSIDE_SMTP_PORT": str(free_port()),
            "SECRET_KEY": secrets.token_urlsafe(40),
        }
        say(f"PostgreSQL {server_version(url)} is up.")
        import django

        django.setup()
        stack.callback(_disconnect)
        yield stack.enter_context(Services(folder)), folder


def _disconnect() -> None:
    from django.db import connections

    connections.close_all()


if __name__ == "__main__":
    sys.exit(main())
