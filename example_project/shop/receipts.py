"""The receipt that a customer gets by e-mail."""

from email.headerregistry import Address

from django.core.mail import EmailMessage
from django.template.loader import render_to_string

from .models import Order


def send(order: Order) -> None:
    """Send the receipt over SMTP.  Raises smtplib.SMTPException, OSError."""
    customer = order.customer
    body = render_to_string(
        "shop/receipt.txt", {"order": order, "lines": order.lines.select_related("product")}
    )
    message = EmailMessage(
        subject=f"Your order {order.reference}",
        body=body,
        to=[str(Address(customer.name, addr_spec=customer.email))],
        headers={"X-Order": order.reference},
    )
    message.send()
