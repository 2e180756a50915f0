"""Every new order is announced to the partner, however it came about: form, API, admin or shell."""

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from . import checkout, tasks
from .models import Order, OrderJob


@receiver(post_save, sender=Order, dispatch_uid="announce new orders")
def announce_new_order(sender: type[Order], instance: Order, created: bool, raw: bool, **kwargs: Any) -> None:
    """Enqueue the webhook in the transaction that stores the order."""
    if created and not raw:
        checkout.enqueue(instance, OrderJob.Kind.WEBHOOK, tasks.announce_order)
