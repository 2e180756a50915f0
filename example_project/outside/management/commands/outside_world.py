"""``manage.py outside_world``: run the servers that the shop's jobs talk to, until SIGTERM or Ctrl-C."""

import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from example_project.outside.mail import mail_server
from example_project.outside.partners import PartnerServer


class Command(BaseCommand):
    """The mail server and the HTTP partners in one process, on loopback."""

    help = "Run the mail server, the webhook endpoint, the courier and the bank that the shop talks to."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the ports and how unreliable the webhook endpoint is."""
        http_port = int(settings.OUTSIDE_URL.rpartition(":")[2])
        parser.add_argument("--http-port", type=int, default=http_port)
        parser.add_argument("--smtp-port", type=int, default=settings.EMAIL_PORT)
        parser.add_argument("--seed", type=int, default=20, help="Of the random failures.")
        parser.add_argument(
            "--failing", type=float, default=0.25, help="Share of webhook calls answered with 500."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until told to stop."""
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        mail = mail_server(options["smtp_port"])
        partners = PartnerServer(options["http_port"], seed=options["seed"], failing=options["failing"])
        mail.start()
        threading.Thread(target=partners.serve_forever, name="partners", daemon=True).start()
        self.stdout.write(f"Mail on port {options['smtp_port']}, partners at {settings.OUTSIDE_URL}")
        stop.wait()
        partners.shutdown()
        mail.stop()
