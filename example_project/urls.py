"""Addresses: the shop at the root, Django's admin beside it."""

from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

admin.site.site_header = "Habit & Lustre"
admin.site.site_title = "Habit & Lustre"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("favicon.ico", RedirectView.as_view(url=static("shop/crystal.svg"))),
    path("", include("example_project.shop.urls")),
]
