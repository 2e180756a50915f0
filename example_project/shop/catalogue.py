"""What is for sale: the crystals of the package gemmology-mineral-database (MIT licence).

Names, formulas, properties, localities and the drawings are the data set's.  It has no prices; the
shop asks Mohs hardness times specific gravity, in euros, which is at least easy to check.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from importlib.resources import as_file, files

from .models import Product

STOCK = 1_000
LARGEST_PICTURE = 20_000
"""Bytes: the drawings of massive aggregates take up to 300 kB, too much for a page with two dozen."""

# The package's own functions do not find the drawings; its database has them.
_CRYSTALS = """
    SELECT e.id, f.name, e.name AS habit, f.chemistry, f.crystal_system, f.hardness_min, f.hardness_max,
           f.sg_max, f.colors_json, f.localities_json, e.model_svg,
           coalesce(e.form_description, f.description, '') AS description
    FROM mineral_expressions e JOIN mineral_families f ON f.id = e.family_id
    WHERE f.origin = 'natural' AND length(e.model_svg) <= :largest_picture
      AND f.hardness_min + f.hardness_max + f.sg_max IS NOT NULL
    ORDER BY e.id
"""
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def products() -> Iterator[Product]:
    """Yield every natural crystal that has a drawing of fitting size, hardness and density; unsaved."""
    with as_file(files("mineral_database") / "data" / "minerals.db") as path:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            yield from map(_product, database.execute(_CRYSTALS, {"largest_picture": LARGEST_PICTURE}))


def _product(row: sqlite3.Row) -> Product:
    return Product(
        sku=row["id"],
        name=_name(row["name"], row["habit"]),
        formula=_formula(row["chemistry"]),
        system=row["crystal_system"],
        hardness=_span(row["hardness_min"], row["hardness_max"]),
        colours=_list(row["colors_json"]),
        localities=_list(row["localities_json"]),
        description=row["description"].strip(),
        picture=_cropped(row["model_svg"]),
        price=(Decimal(str(row["hardness_max"])) * Decimal(str(row["sg_max"]))).quantize(Decimal("0.01")),
        stock=STOCK,
    )


def _name(mineral: str, habit: str) -> str:
    return habit if mineral.lower() in habit.lower() else f"{mineral}, {habit.lower()}"


def _cropped(picture: str) -> str:
    """Return the drawing without its wide margins: a square around the crystal's marked corners."""
    corners = [(float(x), float(y)) for x, y in re.findall(r'<use [^>]*?x="([\d.]+)" y="([\d.]+)"', picture)]
    left, top = (min(values) for values in zip(*corners, strict=True))
    right, bottom = (max(values) for values in zip(*corners, strict=True))
    side = max(right - left, bottom - top) * 1.08
    box = f"{(left + right - side) / 2:.1f} {(top + bottom - side) / 2:.1f} {side:.1f} {side:.1f}"
    return re.sub(r' width="[^"]*" height="[^"]*" viewBox="[^"]*"', f' viewBox="{box}"', picture, count=1)


def _list(names: str) -> str:
    return ", ".join(json.loads(names))


def _span(least: float, most: float) -> str:
    return f"{least:g}" if least == most else f"{least:g}–{most:g}"


def _formula(chemistry: str) -> str:
    """Return the formula with real subscripts; empty where the data set has words instead."""
    formula = chemistry.split(" ")[0]
    if not re.fullmatch(r"([A-Z][a-z]?|[\d()\[\],.:+xn-])+", formula):
        return ""
    # Not before a sign: the 3 of Fe3+ is a charge, and 4-8 is a range.
    return re.sub(
        r"(?<=[A-Za-z)\]])\d+(?![\d+-])", lambda found: found.group().translate(_SUBSCRIPTS), formula
    )
