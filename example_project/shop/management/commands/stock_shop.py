"""``manage.py stock_shop``: fill the shop with crystals and customers; safe to repeat."""

from typing import Any

from django.core.management.base import BaseCommand

from example_project.shop import catalogue, people
from example_project.shop.models import Customer, Product


class Command(BaseCommand):
    """Adds what is missing and changes nothing that is there."""

    help = "Fill the shop with crystals and made-up customers."

    def handle(self, *args: Any, **options: Any) -> None:
        """Insert both and say how many there are."""
        Product.objects.bulk_create(catalogue.products(), ignore_conflicts=True)
        Customer.objects.bulk_create(people.customers(), ignore_conflicts=True)
        if options["verbosity"]:
            self.stdout.write(f"{Product.objects.count()} crystals, {Customer.objects.count()} customers.")
