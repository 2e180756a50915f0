"""The order form of a product's page."""

from django import forms

from .checkout import Basket
from .models import Customer, Product
from .people import CURRENCIES

LARGEST_ORDER = 100_000


class OrderForm(forms.Form):
    """One product for one customer.  The last two fields ask for jobs that are made to fail."""

    quantity = forms.IntegerField(label="How many", min_value=1, max_value=LARGEST_ORDER, initial=1)
    name = forms.CharField(
        label="Your name",
        max_length=200,
        widget=forms.TextInput(attrs={"autocomplete": "name", "dir": "auto"}),
    )
    email = forms.EmailField(
        label="Your e-mail address", widget=forms.EmailInput(attrs={"autocomplete": "email"})
    )
    currency = forms.ChoiceField(
        label="Show the total in", choices=[(code, code) for code in CURRENCIES], initial="EUR"
    )
    courier = forms.BooleanField(
        label="Send it by courier",
        required=False,
        help_text="Their service is down: the job fails and ends dead.",
    )
    engraving = forms.BooleanField(
        label="Engrave it",
        required=False,
        help_text="Kills its worker each time: the job ends dead, the rest goes on.",
    )

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        for name, field in self.fields.items():
            if field.help_text:
                field.widget.attrs["aria-describedby"] = f"{self[name].id_for_label}_help"

    def basket(self, product: Product) -> Basket:
        """Return what the valid form asks for; a new customer is stored, in the caller's transaction."""
        data = self.cleaned_data
        customer, _ = Customer.objects.update_or_create(
            email=data["email"], defaults={"name": data["name"], "currency": data["currency"]}
        )
        return Basket(
            customer, {product: data["quantity"]}, courier=data["courier"], engraving=data["engraving"]
        )
