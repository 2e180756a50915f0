"""What the shop sells, to whom, and what its jobs left behind.

``OrderJob`` says which jobs an order has: it is written in the transaction that places the order and
enqueues the job, so there is never one without the other.
"""

import secrets
from decimal import Decimal

from django.db import models
from django.db.models import Q
from django.urls import reverse


class Product(models.Model):
    """A crystal of one mineral in one habit.  ``price`` is in euros."""

    sku = models.SlugField(unique=True, max_length=80)
    name = models.CharField(max_length=120)
    formula = models.CharField(max_length=120, blank=True)
    system = models.CharField("crystal system", max_length=20)
    hardness = models.CharField("hardness (Mohs)", max_length=20, blank=True)
    colours = models.CharField(max_length=300, blank=True)
    localities = models.CharField(max_length=500, blank=True)
    description = models.TextField(blank=True)
    picture = models.TextField("picture (SVG)")
    price = models.DecimalField(max_digits=9, decimal_places=2)
    stock = models.IntegerField()

    class Meta:
        ordering = ["name"]
        constraints = [models.CheckConstraint(condition=Q(stock__gte=0), name="shop_product_in_stock")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        """Return the address of the product's page."""
        return reverse("product", args=[self.sku])


class Customer(models.Model):
    """Somebody who orders; ``language`` is a BCP 47 tag, ``currency`` an ISO 4217 code."""

    name = models.CharField(max_length=200)
    email = models.EmailField(unique=True)
    address = models.TextField(blank=True)
    language = models.CharField(max_length=10, default="en")
    currency = models.CharField(max_length=3, default="EUR")

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name


def new_reference() -> str:
    """Return a reference that cannot be guessed: whoever knows it sees the order."""
    return secrets.token_hex(6)


class Order(models.Model):
    """An order.  ``total`` is in euros, ``total_converted`` in ``currency`` once the bank answered."""

    reference = models.CharField(max_length=32, unique=True, default=new_reference)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="orders")
    total = models.DecimalField(max_digits=11, decimal_places=2)
    currency = models.CharField(max_length=3, default="EUR")
    total_converted = models.DecimalField(max_digits=16, decimal_places=2, null=True, blank=True)
    placed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"Order {self.reference}"

    def get_absolute_url(self) -> str:
        """Return the address of the order's page."""
        return reverse("order", args=[self.reference])


class OrderLine(models.Model):
    """A product in an order, at the price of the day."""

    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="lines")
    product = models.ForeignKey(Product, on_delete=models.PROTECT)
    quantity = models.PositiveIntegerField()
    unit_price = models.DecimalField(max_digits=9, decimal_places=2)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.quantity} × {self.product}"

    @property
    def amount(self) -> Decimal:
        """What the line costs, in euros."""
        return self.quantity * self.unit_price


class OrderJob(models.Model):
    """A job of an order.  No foreign key: the queue prunes old jobs, and the order outlives them."""

    class Kind(models.TextChoices):
        """What the job is for, in the words of the order's page."""

        RECEIPT = "receipt", "Receipt by e-mail"
        INVOICE = "invoice", "Invoice as PDF"
        WEBHOOK = "webhook", "Webhook to the partner"
        CONVERSION = "conversion", "Total in the customer's currency"
        COURIER = "courier", "Courier booking"
        ENGRAVING = "engraving", "Engraving"

    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="order_jobs")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    job_id = models.BigIntegerField(unique=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["order", "kind"], name="shop_one_job_of_a_kind")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: job {self.job_id}"


class Invoice(models.Model):
    """The invoice of an order; the file lies below ``MEDIA_ROOT``."""

    order = models.OneToOneField(Order, on_delete=models.CASCADE, related_name="invoice")
    file = models.FileField(upload_to="invoices")
    size = models.PositiveIntegerField(help_text="Bytes.")
    made_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"Invoice of order {self.order_id}"
