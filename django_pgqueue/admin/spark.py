"""Small pictures drawn by the server: bars of counts over time, as SVG without style or script of its own."""

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

HEIGHT = 24
STEP = 5


def bars(counts: Sequence[int], told: str) -> SafeString:
    """Return a bar for each count; ``told`` says in words what the picture shows."""
    most = max([*counts, 1])
    drawn = [
        (number * STEP, HEIGHT - height, STEP - 1, height)
        for number, count in enumerate(counts)
        if (height := max(round(HEIGHT * count / most), 2) if count else 0)
    ]
    rects = format_html_join("", '<rect x="{}" y="{}" width="{}" height="{}"/>', drawn)
    return format_html(
        '<svg class="pgq-spark" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">'
        '<title>{}</title><line x1="0" y1="{}" x2="{}" y2="{}"/>{}</svg>',
        len(counts) * STEP,
        HEIGHT,
        len(counts) * STEP,
        HEIGHT,
        told,
        told,
        HEIGHT,
        len(counts) * STEP,
        HEIGHT,
        rects,
    )
