"""A page with a text and a picture, and what the receivers of signals heard."""

from django.db import models
from wagtail.admin.panels import FieldPanel
from wagtail.fields import RichTextField
from wagtail.models import Page
from wagtail.search import index


class Article(Page):
    """A page that is found by its text and refers to an image."""

    body = RichTextField()
    picture = models.ForeignKey(
        "wagtailimages.Image", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    search_fields = [*Page.search_fields, index.SearchField("body")]
    content_panels = [*Page.content_panels, FieldPanel("body"), FieldPanel("picture")]


class Heard(models.Model):
    """One signal as one receiver got it."""

    api = models.CharField(max_length=20)
    signal = models.CharField(max_length=20)
    sender = models.CharField(max_length=100)
    result_id = models.CharField(max_length=64)
    status = models.CharField(max_length=20)
    attempts = models.IntegerField()
