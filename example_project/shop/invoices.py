"""Invoices as PDF, set by Typst: ``invoice.typ`` is the layout, the order comes in as JSON.

Names come in every script, so the fonts are packages of this example's own (Noto, SIL Open Font
License), never whatever the machine has.
"""

import functools
import json
import os
import threading
from importlib.resources import files
from pathlib import Path
from typing import Any

import typst
from django.conf import settings

from .models import Invoice, Order

LAYOUT = Path(__file__).with_name("invoice.typ")
FONT_FOLDERS = [
    ("fontpkg_noto_sans", "files"),
    ("fontpkg_noto_sans_arabic", "files"),
    ("fontpkg_noto_sans_devanagari", "files"),
    ("noto_cjk_sans_jp_regular", ""),
]
_one_at_a_time = threading.Lock()


def make(order: Order) -> Invoice:
    """Render the order's invoice, put the file in place and store the row; safe to repeat."""
    content = render(order)
    name = f"invoices/{order.reference}.pdf"
    _put_in_place(Path(settings.MEDIA_ROOT) / name, content)
    invoice, _ = Invoice.objects.update_or_create(order=order, defaults={"file": name, "size": len(content)})
    return invoice


def render(order: Order) -> bytes:
    """Return the invoice as PDF."""
    # A compiler serves one thread at a time; a page takes milliseconds, so that waiting costs little.
    with _one_at_a_time:
        pages = _compiler().compile(format="pdf", sys_inputs={"order": json.dumps(_content(order))})
    assert isinstance(pages, bytes), "a PDF is one file, whatever its number of pages"
    return pages


@functools.cache
def _compiler() -> typst.Compiler:
    folders = [str(files(package).joinpath(folder)) for package, folder in FONT_FOLDERS]
    return typst.Compiler(str(LAYOUT), font_paths=folders, ignore_system_fonts=True)


def _content(order: Order) -> dict[str, Any]:
    customer = order.customer
    return {
        "reference": order.reference,
        "date": f"{order.placed_at:%d %B %Y}",
        "customer": {"name": customer.name, "address": customer.address, "email": customer.email},
        "language": customer.language,
        "total": f"{order.total:,.2f}",
        "lines": [
            {
                "name": line.product.name,
                "formula": line.product.formula,
                "picture": line.product.picture,
                "quantity": line.quantity,
                "price": f"{line.unit_price:,.2f}",
                "amount": f"{line.amount:,.2f}",
            }
            for line in order.lines.select_related("product")
        ],
    }


def _put_in_place(path: Path, content: bytes) -> None:
    """Write the file so that it is there whole or not at all, whenever the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    unfinished.write_bytes(content)
    unfinished.replace(path)
