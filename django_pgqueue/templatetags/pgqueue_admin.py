"""The overview on the app's own page of the admin's index, above the list of its models."""

from typing import Any

from django import template
from django.contrib.admin.sites import all_sites

from django_pgqueue.admin.operating.pages import LIVE
from django_pgqueue.operating import Overview

register = template.Library()


@register.inclusion_tag("admin/django_pgqueue/overview/embedded.html", takes_context=True)
def pgqueue_overview(context: dict[str, Any]) -> dict[str, Any]:
    """Return what the overview shows, or nothing for a user who may not see it."""
    request = context["request"]
    site = next((site for site in all_sites if site.name == request.current_app), None)
    page: Any = site and site._registry.get(Overview)
    if page is None or not page.has_view_permission(request):
        return {}
    return {
        "request": request,
        "live_url": page.url(LIVE),
        "live_template": f"admin/django_pgqueue/{page.page}/{LIVE}.html",
        **page.figures(request),
    }
