"""Fixtures for the tests of the admin."""

import pytest
from django.test import Client

from .site import visitor


@pytest.fixture
def boss(db: None) -> Client:
    """A visitor who may do everything."""
    return visitor(is_superuser=True)
