"""A project that changes many rows with django-maintenance-tasks, whose jobs enqueue each other."""
