"""The HTTP endpoints of the outside world.

``POST /webhooks/orders``  a partner's: fails at random with 500 (seeded), else accepts each
                           ``Idempotency-Key`` once and confirms every repetition of it
``POST /courier``          a courier's whose service is down: 503, always
``GET /rates/EUR/CODE``    a bank's: the European Central Bank's reference rate of one euro
"""

import json
import random
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connections

from .models import CourierCall, WebhookCall
from .rates import reference_rates

LONGEST_ANSWER = 0.04
"""Seconds: partners answer after a random time up to this."""

Answer = tuple[HTTPStatus, dict[str, Any]]


class Partners(BaseHTTPRequestHandler):
    """One request; the server has the seed and the share of failures."""

    server: "PartnerServer"
    timeout = 20
    wbufsize = -1  # head and body in one packet: two would wait for each other's acknowledgement

    def do_GET(self) -> None:
        """Serve a rate."""
        self._answer(self._rate() if self.path.startswith("/rates/EUR/") else _nothing_here())

    def do_POST(self) -> None:
        """Take a webhook or a booking."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}")
        try:
            if self.path == "/webhooks/orders":
                self._answer(self._webhook(body))
            elif self.path == "/courier":
                self._answer(self._courier(body))
            else:
                self._answer(_nothing_here())
        finally:
            connections.close_all()

    def _webhook(self, body: dict[str, Any]) -> Answer:
        key = self.headers["Idempotency-Key"]
        call = WebhookCall(key=key, order_reference=body["order"])
        earlier = WebhookCall.objects.filter(key=key).count()
        dice = random.Random(f"{self.server.seed}:{key}:{earlier}")
        time.sleep(dice.uniform(0, LONGEST_ANSWER))
        if dice.random() < self.server.failing:
            return _record(call, WebhookCall.Verdict.REFUSED)
        try:
            return _record(call, WebhookCall.Verdict.ACCEPTED)
        except IntegrityError:
            return _record(call, WebhookCall.Verdict.REPLAYED)

    def _courier(self, body: dict[str, Any]) -> Answer:
        CourierCall.objects.create(order_reference=body["order"])
        return HTTPStatus.SERVICE_UNAVAILABLE, {"error": "Our booking service is down for maintenance."}

    def _rate(self) -> Answer:
        rates = reference_rates()
        code = self.path.rpartition("/")[2]
        if code not in rates.per_euro:
            return _nothing_here()
        return HTTPStatus.OK, {"currency": code, "per_euro": rates.per_euro[code], "as_of": rates.as_of}

    def _answer(self, answer: Answer) -> None:
        status, content = answer
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _record(call: WebhookCall, verdict: WebhookCall.Verdict) -> Answer:
    call.verdict = verdict
    call.save(force_insert=True)
    failed = verdict == WebhookCall.Verdict.REFUSED
    return (HTTPStatus.INTERNAL_SERVER_ERROR if failed else HTTPStatus.OK), {"verdict": verdict}


def _nothing_here() -> Answer:
    return HTTPStatus.NOT_FOUND, {"error": "There is nothing at this address."}


class PartnerServer(ThreadingHTTPServer):
    """All partners on one loopback port.  ``failing`` is the share of webhooks answered with 500."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, *, seed: int, failing: float) -> None:
        super().__init__((settings.LOOPBACK, port), Partners)
        self.seed = seed
        self.failing = failing
