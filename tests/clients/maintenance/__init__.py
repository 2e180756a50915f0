"""A project that changes many rows with django-maintenance-tasks, whose runs are jobs that enqueue themselves."""
