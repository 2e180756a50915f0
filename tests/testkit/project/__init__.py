"""A project with a second database, whose tests Django's own runner runs; see ``test_project``."""
