"""A project with a timetable: django-crontask's scheduler enqueues, the worker runs."""
