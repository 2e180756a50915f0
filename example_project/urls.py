"""Addresses: the shop at the root, Django's admin beside it."""

from django.contrib import admin
from django.urls import include, path

admin.site.site_header = "Habit & Lustre"
admin.site.site_title = "Habit & Lustre"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("example_project.shop.urls")),
]
