"""Fixtures for all tests. The database server is in postgres.py, waiting in waiting.py."""
