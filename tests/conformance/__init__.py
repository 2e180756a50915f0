"""Django's own tests of its Tasks API, run against this backend; `python3 dev.py conformance` runs them.

The tests are fetched with Django's source distribution and never edited: names.py maps a few names when they
are imported. What cannot apply is listed in inapplicable.py, each with its reason.
"""
