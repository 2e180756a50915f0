"""A project watched by django-tasks-monitor, which learns everything from the three signals."""
