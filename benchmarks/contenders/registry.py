"""The peers by name, the quickest first."""

from benchmarks.contenders.base import Contender
from benchmarks.contenders.celery import Celery
from benchmarks.contenders.django_ox import DjangoOx
from benchmarks.contenders.graphile_worker import GraphileWorker
from benchmarks.contenders.pgqueuer import PgQueuer
from benchmarks.contenders.procrastinate import Procrastinate

PEERS: dict[str, Contender] = {
    peer.name: peer for peer in (GraphileWorker(), PgQueuer(), Procrastinate(), DjangoOx(), Celery())
}
