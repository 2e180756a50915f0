"""All texts for people can be translated, and German is complete: each text of the source has one there."""

import ast
import gettext
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from django.utils import translation
from django.utils.translation.template import templatize

import django_pgqueue

from .admin.site import text_of, visitor

PACKAGE = Path(django_pgqueue.__file__).parent
GERMAN = PACKAGE / "locale" / "de" / "LC_MESSAGES"
SINGLE, PLURAL = {"_", "gettext", "gettext_lazy"}, {"ngettext", "ngettext_lazy"}
TEXT = r"""u?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
IN_TEMPLATES = re.compile(rf"\b(?:_|n?gettext)\(\s*{TEXT}(?:,\s*{TEXT})?", re.DOTALL)
PLACE = re.compile(r"%\(\w+\)[sd]|%[sd]|%%")


def texts() -> Iterator[str]:
    """Yield every text in the source that is marked for translation."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                wanted = 2 if node.func.id in PLURAL else 1 if node.func.id in SINGLE else 0
                for argument in node.args[:wanted]:
                    assert isinstance(argument, ast.Constant), f"{path}: {ast.unparse(node)} cannot be found"
                    yield str(argument.value)
    for path in PACKAGE.rglob("*.html"):
        for found in IN_TEMPLATES.findall(templatize(path.read_text(), origin=str(path))):
            yield from (ast.literal_eval(text) for text in found if text)


@pytest.fixture(scope="module")
def compiled() -> dict[str, str]:
    """Each text of the compiled catalogue with its German one, all forms of the plural among them."""
    with (GERMAN / "django.mo").open("rb") as file:
        catalogue: dict[object, str] = vars(gettext.GNUTranslations(file))["_catalog"]
    return {
        f"{key[0]}\0{key[1]}" if isinstance(key, tuple) else str(key): text
        for key, text in catalogue.items()
        if key
    }


def written() -> dict[str, list[str]]:
    """Return each text of the catalogue's source with its translations."""
    found: dict[str, list[str]] = {}
    for entry in (GERMAN / "django.po").read_text().split("\n\n")[1:]:
        texts = {
            name: ast.literal_eval(text)
            for name, text in re.findall(r'^(msg\S+) ("(?:[^"\\]|\\.)*")$', entry, re.MULTILINE)
        }
        found[texts["msgid"]] = [text for name, text in texts.items() if name.startswith("msgstr")]
    return found


def test_every_text_has_a_german_one() -> None:
    known = written()
    plurals = set(re.findall(r'^msgid_plural "(.*)"$', (GERMAN / "django.po").read_text(), re.MULTILINE))
    missing = {text for text in texts() if text not in known and text.replace('"', '\\"') not in plurals}
    assert missing == set(), "run makemessages, translate, and compilemessages"
    assert {text for text, german in known.items() if not all(german)} == set()


def test_the_catalogue_is_compiled_as_it_is_written(compiled: dict[str, str]) -> None:
    flat = {
        f"{text}\0{number}" if len(german) > 1 else text: each
        for text, german in written().items()
        for number, each in enumerate(german)
    }
    assert compiled == flat, "run compilemessages"


def test_what_is_put_into_a_text_is_put_into_its_translation() -> None:
    wrong = {
        text: german
        for text, all_german in written().items()
        for german in all_german
        if sorted(PLACE.findall(text)) != sorted(PLACE.findall(german))
    }
    assert wrong == {}


@pytest.mark.django_db
def test_the_pages_are_german_for_germans() -> None:
    client: Client = visitor(is_superuser=True)
    with translation.override("de"):
        pages = {
            path: text_of(client.get(f"/admin/django_pgqueue/{path}"))
            for path in ("overview/", "queuepause/", "worker/", "job/", "deadjob/")
        }
    assert "Kein Worker läuft." in pages["overview/"]
    assert "Aus einer angehaltenen Warteschlange wird nichts genommen" in pages["queuepause/"]
    assert "Kein Worker ist angemeldet" in pages["worker/"]
    assert "Kein Job passt." in pages["job/"]
    assert "Tote Jobs nach Ursache" in pages["deadjob/"]
