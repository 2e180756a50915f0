"""The project's tasks."""

from django.contrib.auth.models import Group

from django_pgqueue import task


@task
def add_group(name: str, database: str = "default", *, twice: bool = False) -> str:
    for _ in range(1 + twice):
        Group.objects.using(database).create(name=name)
    return name
