"""The example shop under a strict Content Security Policy, with an impatient queue and quick logins."""

from example_project.settings import *  # noqa: F403 - settings extend settings
from example_project.settings import MIDDLEWARE, TASKS

MIDDLEWARE = [*MIDDLEWARE, "tests.browser.policy.strict"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
TASKS["default"]["OPTIONS"] |= {"max_attempts": 2, "backoff_base": 0.05, "backoff_cap": 0.2}
