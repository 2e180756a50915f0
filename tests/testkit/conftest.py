"""The plugin's fixtures, also where no installed distribution has an entry point for them."""

from django_pgqueue.pytest_plugin import pgqueue, pgqueue_worker, pgqueue_worker_options

__all__ = ["pgqueue", "pgqueue_worker", "pgqueue_worker_options"]
