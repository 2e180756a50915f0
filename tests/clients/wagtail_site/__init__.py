"""A Wagtail site. Wagtail imports the backport even on Django 6: both Tasks APIs live side by side here."""
