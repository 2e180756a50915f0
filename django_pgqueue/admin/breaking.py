"""Where a long dotted name may break, so that a narrow page cuts none of its words in two."""

import re

from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe

from .wording import visible


def breakable(name: str) -> SafeString:
    """Return a name that may break after a dot or an underscore, escaped; copied, it is the name itself."""
    parts = re.split(r"(?<=[._])", visible(name))
    return format_html_join(mark_safe("<wbr>"), "{}", ((part,) for part in parts if part))  # nosec B308
