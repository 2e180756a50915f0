"""The fault harness: real workers on a real server under a seeded schedule of faults, judged by a checker.

``python3 dev.py chaos`` runs it; docs/reliability.md says what it proves. Read it in this order: ``history``
(what is recorded), ``checker`` (what must hold of it), ``tasks`` and ``producer`` (the load), ``arena`` (what
faults act on), ``faults`` (what is done to it), ``run`` (one run from its start to its verdict).
"""
