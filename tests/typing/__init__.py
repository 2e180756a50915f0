"""Code of users, for type checkers only: ``devtools.snippets`` compares what they say with the comments.

``# error: CODE RULE`` is what mypy and pyright say about the line it stands on; all other lines are right.
"""
