"""Runs the conformance suite in the environment of the Python that runs this; arguments go to pytest."""

import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).with_name("suite.py")
SETTINGS = "tests.conformance.settings"

sys.exit(pytest.main([str(SUITE), f"--ds={SETTINGS}", "-p", "no:cacheprovider", *sys.argv[1:]]))
