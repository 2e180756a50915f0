"""A small shop on django_pgqueue: crystals, sold with jobs that really do something.

``manage.py`` runs it like any Django project; ``demo.py`` runs the whole of it and checks the result.
"""
