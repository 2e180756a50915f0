"""Customers who do not exist, from Faker, in many languages and scripts.

The seed is fixed, so each run has the same people.  Their e-mail addresses end in example.com and its
like, which are reserved and belong to nobody.
"""

import importlib.util
from collections.abc import Iterator

from faker import Faker

from .models import Customer

SEED = 20
EACH = 5
CURRENCY_OF = {
    "ar_SA": "USD",
    "cs_CZ": "CZK",
    "da_DK": "DKK",
    "de_DE": "EUR",
    "el_GR": "EUR",
    "es_MX": "MXN",
    "fr_FR": "EUR",
    "hi_IN": "INR",
    "hu_HU": "HUF",
    "ja_JP": "JPY",
    "ko_KR": "KRW",
    "pl_PL": "PLN",
    "pt_BR": "BRL",
    "sv_SE": "SEK",
    "tr_TR": "TRY",
    "uk_UA": "EUR",
    "zh_TW": "USD",
}
"""Locale to the currency its customers want to see; only such as the European Central Bank quotes."""

FAMILY_NAME_FIRST = {"hu_HU": " ", "ja_JP": " ", "ko_KR": "", "zh_TW": ""}
"""Locale to what stands between family name and given name."""

CURRENCIES = sorted({*CURRENCY_OF.values(), "CHF", "GBP"})


def customers() -> Iterator[Customer]:
    """Yield the same customers each time; unsaved."""
    for locale, currency in CURRENCY_OF.items():
        fake = Faker(locale)
        fake.seed_instance(f"{SEED} {locale}")
        for number in range(1, EACH + 1):
            mailbox, _, domain = fake.ascii_safe_email().partition("@")
            yield Customer(
                name=_name(fake, locale),
                email=f"{mailbox}.{locale[-2:].lower()}{number}@{domain}",
                address=fake.address() if _writes_addresses(locale) else "",
                language=locale.partition("_")[0],
                currency=currency,
            )


def _name(fake: Faker, locale: str) -> str:
    # Not fake.name(): in some locales it comes with a title, or with the word for "title".
    given, family = fake.first_name(), fake.last_name()
    if locale in FAMILY_NAME_FIRST:
        return family + FAMILY_NAME_FIRST[locale] + given
    return f"{given} {family}"


def _writes_addresses(locale: str) -> bool:
    """Tell whether Faker knows addresses of the locale; it fills in American ones where it does not."""
    return importlib.util.find_spec(f"faker.providers.address.{locale}") is not None
