"""The tests' settings with the backend under test. No OPTIONS: Django's tests want them empty."""

from tests.settings import *  # noqa: F403

TASKS = {"default": {"BACKEND": "tests.conformance.backends.StoredBackend", "QUEUES": ["default", "queue_1"]}}
