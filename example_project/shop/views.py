"""The shop's pages.  Both ways to order, form and JSON, enqueue in the transaction of the view."""

from http import HTTPStatus

from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Q
from django.http import FileResponse, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from . import api, checkout, progress
from .forms import OrderForm
from .models import Customer, Invoice, Order, Product

PAGE = 24
RECENT = 8


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """List the crystals, all or those that match a search, and the latest orders."""
    wanted = request.GET.get("q", "").replace("\0", "").strip()
    products = Product.objects.defer("picture", "description")
    if wanted:
        products = products.filter(Q(name__icontains=wanted) | Q(colours__icontains=wanted))
    page = Paginator(products, PAGE).get_page(request.GET.get("page"))
    recent = Order.objects.select_related("customer")[:RECENT]
    return render(request, "shop/home.html", {"page": page, "wanted": wanted, "recent": recent})


def product(request: HttpRequest, sku: str) -> HttpResponse:
    """Show a crystal with its order form; a POST places the order."""
    crystal = get_object_or_404(Product.objects.defer("picture"), sku=sku)
    form = OrderForm(request.POST or None, initial=_somebody(), label_suffix="")
    if request.method == "POST" and form.is_valid():
        try:
            with transaction.atomic():
                order = checkout.place(form.basket(crystal))
        except checkout.OutOfStock as refusal:
            form.add_error("quantity", str(refusal))
        else:
            return redirect(order)
    return render(request, "shop/product.html", {"product": crystal, "form": form})


@csrf_exempt  # for programs: no cookie gives a caller any right here, so there is nothing to forge
@require_POST
def order_by_json(request: HttpRequest) -> JsonResponse:
    """Place an order that comes as JSON: 201 with its address, 400 or 409 with what is wrong."""
    try:
        with transaction.atomic():
            order = checkout.place(api.read_basket(request.body))
    except api.BadRequest as error:
        return JsonResponse({"error": str(error)}, status=HTTPStatus.BAD_REQUEST)
    except checkout.OutOfStock as refusal:
        return JsonResponse({"error": str(refusal)}, status=HTTPStatus.CONFLICT)
    return JsonResponse(
        {"reference": order.reference, "url": order.get_absolute_url()}, status=HTTPStatus.CREATED
    )


@require_safe
def order(request: HttpRequest, reference: str) -> HttpResponse:
    """Show an order and how its jobs are doing."""
    placed = get_object_or_404(Order.objects.select_related("customer"), reference=reference)
    lines = placed.lines.select_related("product").defer("product__picture", "product__description")
    return render(request, "shop/order.html", {"order": placed, "lines": lines, **_jobs(placed)})


@require_safe
def order_jobs(request: HttpRequest, reference: str) -> HttpResponse:
    """Return the part of the order's page that changes while the jobs run."""
    placed = get_object_or_404(Order, reference=reference)
    return render(request, "shop/_jobs.html", {"order": placed, **_jobs(placed)})


@require_safe
def invoice(request: HttpRequest, reference: str) -> FileResponse:
    """Return the order's invoice; 404 until it is made."""
    made = get_object_or_404(Invoice, order__reference=reference)
    return FileResponse(made.file.open(), filename=f"invoice-{reference}.pdf", content_type="application/pdf")


@require_safe
@cache_control(max_age=24 * 3600, public=True)
def picture(request: HttpRequest, sku: str) -> HttpResponse:
    """Return the drawing of a crystal."""
    crystal = get_object_or_404(Product.objects.only("picture"), sku=sku)
    response = HttpResponse(crystal.picture, content_type="image/svg+xml")
    response["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'"
    return response


def _jobs(placed: Order) -> dict[str, object]:
    has_invoice = Invoice.objects.filter(order=placed).exists()
    return {"has_invoice": has_invoice, **progress.summed_up(progress.of_order(placed))}


def _somebody() -> dict[str, object]:
    """Return a made-up customer, so that trying the form takes one click."""
    customer = Customer.objects.order_by("?").first()
    return {"name": customer.name, "email": customer.email, "currency": customer.currency} if customer else {}
