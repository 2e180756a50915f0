"""The shop's addresses."""

from django.urls import path

from . import views

urlpatterns = [
    path("", views.home, name="home"),
    path("crystals/<slug:sku>/", views.product, name="product"),
    path("crystals/<slug:sku>/picture.svg", views.picture, name="picture"),
    path("orders/<slug:reference>/", views.order, name="order"),
    path("orders/<slug:reference>/jobs/", views.order_jobs, name="order_jobs"),
    path("orders/<slug:reference>/invoice.pdf", views.invoice, name="invoice"),
    path("api/orders/", views.order_by_json, name="order_by_json"),
]
