#!/usr/bin/env python3
"""One script for everything a developer runs; needs no make and no installed packages, only Python.

    python3 dev.py demo [--serve]    the shop: orders, workers, a killed worker, a summary
    python3 dev.py test [ARGS]       the test suite; ARGS go to pytest
    python3 dev.py lint              ruff, mypy, pyright and the check for missing migrations
    python3 dev.py audit             bandit, and pip-audit where its service can be reached
    python3 dev.py matrix [LEG...]   the suite on every supported Django, Python and PostgreSQL
    python3 dev.py conformance       Django's own tests of its Tasks API, on each Django that can run here
    python3 dev.py clients [NAME...] published packages that use a Tasks backend; --all: on every Django
    python3 dev.py slow [ARGS]       the tests marked slow
    python3 dev.py browser [ARGS]    the tests marked browser (needs chromium and chromedriver)
    python3 dev.py chaos [ARGS]      real workers under faults, and a verdict (--short: minutes; --help)
    python3 dev.py soak MINUTES      the same for so long, with memory, connections and sizes watched
    python3 dev.py bench [ARGS]      benchmarks: a short selection, or what ARGS say (bench --help)

Environments are made inside this folder (.venv, .cache) from the newest Python found. A private PostgreSQL is
started for each command and removed afterwards; set DATABASE_URL to use a server of your own.
"""

import os
import sys

OLDEST = (3, 11)


def require_python():
    """Go on under a newer Python if this one is too old, or say what is needed. Parses on any Python 3."""
    if sys.version_info >= OLDEST:
        return
    for name in ["python3.%d" % minor for minor in range(14, 10, -1)]:
        if os.system(name + " -c 'import venv, ensurepip' >/dev/null 2>&1") == 0:
            os.execvp(name, [name] + sys.argv)
    sys.exit("dev.py needs Python 3.11 or newer; %s is %d.%d." % ((sys.executable,) + sys.version_info[:2]))


if __name__ == "__main__":
    require_python()
    from devtools.commands import main

    main(sys.argv[1:], __doc__)
