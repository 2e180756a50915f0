"""The pages as people use them: a real browser, the example shop and its worker (``dev.py browser``)."""
