"""The tests' settings with the backend under test; the options are the defaults, as Django's tests want them."""

from tests.settings import *  # noqa: F403

TASKS = {"default": {"BACKEND": "tests.conformance.backends.StoredBackend", "QUEUES": ["default", "queue_1"]}}
