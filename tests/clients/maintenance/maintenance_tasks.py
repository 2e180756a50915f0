"""The maintenance tasks; django-maintenance-tasks finds them by the name of this module."""

import os
import time

from django.db.models import QuerySet
from maintenance_tasks.task import MaintenanceTask

from .models import Item, Visit


class VisitAll(MaintenanceTask):
    """Visit every item; takes 20 ms for each."""

    batch_size = 5

    def collection(self) -> QuerySet[Item]:
        return Item.objects.all()

    def process(self, item: Item) -> None:
        time.sleep(0.02)  # noqa: TID251 - a task that takes time
        Visit.objects.create(item_id=item.pk, pid=os.getpid())


class VisitGently(VisitAll):
    """The same, and put off until somebody says that the database has calmed down."""

    throttle_backoff = 1

    def throttle(self) -> bool:
        return not Visit.objects.filter(item_id=0).exists()
