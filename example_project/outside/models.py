"""The journal: one row for each message and each call that arrived, written by who received it."""

from django.db import models
from django.db.models import Q


class Mail(models.Model):
    """A message that the mail server accepted."""

    recipient = models.EmailField()
    order_reference = models.CharField(max_length=32, db_index=True)
    subject = models.CharField(max_length=255)
    size = models.PositiveIntegerField(help_text="Bytes on the wire.")
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = "e-mail"

    def __str__(self) -> str:
        return f"{self.recipient}: {self.subject}"


class WebhookCall(models.Model):
    """A call of the partner's webhook endpoint and what the partner made of it."""

    class Verdict(models.TextChoices):
        """``replayed``: the key was accepted before, so the call is confirmed and changes nothing."""

        ACCEPTED = "accepted"
        REPLAYED = "replayed"
        REFUSED = "refused", "Refused (500)"

    key = models.CharField("idempotency key", max_length=64, db_index=True)
    order_reference = models.CharField(max_length=32)
    verdict = models.CharField(max_length=10, choices=Verdict.choices)
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["key"], condition=Q(verdict="accepted"), name="outside_key_accepted_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.verdict}"


class CourierCall(models.Model):
    """A booking that the courier turned down; it turns down all of them."""

    order_reference = models.CharField(max_length=32)
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.order_reference
