"""A project that used django-tasks-db changes its settings, takes its waiting tasks along, and works."""
