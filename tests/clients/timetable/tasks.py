"""The timetable; the scheduler finds it by the name of this module."""

import django.tasks
from apscheduler.triggers.cron import CronTrigger
from crontask import cron

import django_pgqueue

EVERY_SECOND = CronTrigger(second="*")


@cron(EVERY_SECOND)
@django_pgqueue.task(queue_name="other", priority=9)
def tick() -> str:
    return "tick"


@cron(EVERY_SECOND)
@django.tasks.task
def tock() -> str:
    return "tock"


@cron(EVERY_SECOND)
@django_pgqueue.task(unique_key="sweep")
def sweep() -> str:
    """Due every second, but never twice at once."""
    return "sweep"
