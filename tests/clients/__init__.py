"""Published packages that use a Tasks backend, unmodified, driven on this one; see `python3 dev.py clients`.

Each has a folder with its settings and its suite.py, and an environment of its own (devtools/suites.py). The
suites are not named test_*.py: the normal run leaves them alone.
"""
