"""The pages as people use them: a real browser, the example shop, a real worker. Run by ``dev.py browser``."""
