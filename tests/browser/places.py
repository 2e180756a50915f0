"""Addresses in the admin."""

LIST = "/admin/django_pgqueue/job/"


def page_of(job_id: int) -> str:
    """Return the address of a job's page."""
    return f"{LIST}{job_id}/change/"
