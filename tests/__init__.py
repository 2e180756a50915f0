"""Tests of django_pgqueue. See README.md in this folder."""
