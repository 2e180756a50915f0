"""django-ox: a Tasks backend for Django on PostgreSQL, threads that poll."""

from benchmarks.contenders.python_peer import PythonPeer


class DjangoOx(PythonPeer):
    """At its best with four threads that look every 10 ms."""

    name = "django-ox"
    module = "django_ox"
    requirements = ("django-ox", "Django", "psycopg[binary,pool]")
    table = "django_ox_oxtask"
    pending = "SELECT count(*) FROM django_ox_oxtask WHERE status IN ('READY', 'RUNNING')"
