#!/usr/bin/env python3
"""Django's command line for the shop; runs from any folder."""

import os
import sys
from pathlib import Path

CLONE = Path(__file__).resolve().parent.parent


def main() -> None:
    """Run a management command with the shop's settings."""
    # Python put this file's own folder first: its modules must not hide others of the same name.
    sys.path[0] = str(CLONE)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
