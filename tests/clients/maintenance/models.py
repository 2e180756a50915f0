"""What is maintained, and each time that it was."""

from django.db import models


class Item(models.Model):
    """A row of the big table."""


class Visit(models.Model):
    """An item was processed, by this process."""

    item_id = models.BigIntegerField()
    pid = models.BigIntegerField()
