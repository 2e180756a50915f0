"""The shop in the admin; an order links to its jobs in the queue's own admin."""

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from .models import Customer, Invoice, Order, OrderJob, OrderLine, Product


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):
    """Crystals."""

    list_display = ["name", "formula", "system", "price", "stock"]
    list_filter = ["system"]
    search_fields = ["name", "sku"]
    exclude = ["picture"]


@admin.register(Customer)
class CustomerAdmin(admin.ModelAdmin):
    """Customers."""

    list_display = ["name", "email", "language", "currency"]
    search_fields = ["name", "email"]


class LineInline(admin.TabularInline):
    """What was ordered."""

    model = OrderLine
    extra = 0
    raw_id_fields = ["product"]


class JobInline(admin.TabularInline):
    """The order's jobs, to be read only."""

    model = OrderJob
    extra = 0
    fields = ("kind", "job")
    readonly_fields = ("kind", "job")
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Refuse: jobs come from placing an order."""
        return False

    @admin.display(description="Job")
    def job(self, row: OrderJob) -> SafeString:
        """Link to the job."""
        address = reverse("admin:django_pgqueue_job_change", args=[row.job_id])
        return format_html('<a href="{}">job {}</a>', address, row.job_id)


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    """Orders."""

    list_display = ["reference", "customer", "total", "currency", "placed_at"]
    list_select_related = ["customer"]
    search_fields = ["reference", "customer__name", "customer__email"]
    raw_id_fields = ["customer"]
    inlines = [LineInline, JobInline]


@admin.register(Invoice)
class InvoiceAdmin(admin.ModelAdmin):
    """Invoices."""

    list_display = ["order", "file", "size", "made_at"]
    list_select_related = ["order"]
    raw_id_fields = ["order"]
