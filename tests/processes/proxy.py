"""A TCP proxy before the database that can freeze, cut, and swallow the reply to a commit."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress


class Link:
    """One client's connection and its own to the server."""

    def __init__(self, client: socket.socket, server: socket.socket, proxy: "Proxy") -> None:
        self.client, self.server, self.proxy = client, server, proxy
        self.flows = threading.Event()
        self.flows.set()
        self.abandoned = self.over = False
        self.greeting = b""
        self.replies = 0
        self._threads = [
            threading.Thread(target=self._pump, args=pair, daemon=True)
            for pair in ((client, server, False), (server, client, True))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def name(self) -> str:
        """The application_name that the client gave."""
        fields = self.greeting.split(b"\0")
        with suppress(ValueError, IndexError):
            return fields[fields.index(b"application_name") + 1].decode()
        return ""

    def cut(self) -> None:
        """Break both connections off."""
        self.over = True
        self.flows.set()
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Cut, and wait for the threads."""
        self.cut()
        for thread in self._threads:
            thread.join(5.0)
        self.client.close()
        self.server.close()

    def _pump(self, source: socket.socket, target: socket.socket, is_reply: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.flows.wait()
                if not is_reply and len(self.greeting) < 1000:
                    self.greeting += data
                self.replies += is_reply
                if is_reply and self.proxy.swallows(self):
                    break
                target.sendall(data)
        self.cut()


class Proxy:
    """Forwards to ``host:port`` from a port of its own; close it in the end."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.links: list[Link] = []
        self.cuts = 0
        self._cut_when: tuple[str, Callable[[], bool]] | None = None
        self._accepts_frozen = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def freeze(self, *, new_ones: bool = True) -> None:
        """Forward nothing any more, without a word; ``new_ones`` says whether new connections freeze too."""
        self._accepts_frozen = new_ones
        for link in list(self.links):
            link.flows.clear()

    def thaw(self) -> None:
        """Forward again."""
        self._accepts_frozen = False
        for link in list(self.links):
            if not link.abandoned:
                link.flows.set()

    def abandon(self) -> None:
        """Let no connection that there is ever flow again, as a firewall that forgot them; new ones do."""
        for link in list(self.links):
            link.abandoned = True
            link.flows.clear()

    def cut_when(self, name: str, condition: Callable[[], bool]) -> None:
        """Before a reply reaches a client of this name ask the condition, and if it holds cut, once.

        Connections that have only just been made are left alone.
        """
        self._cut_when = (name, condition)

    def swallows(self, link: Link) -> bool:
        """True when this reply must not arrive."""
        with self._lock:
            armed = self._cut_when
            if armed is None or armed[0] not in link.name or link.replies < 10 or not armed[1]():
                return False
            self._cut_when = None
            self.cuts += 1
            return True

    def close(self) -> None:
        """Stop listening and break everything off."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(5.0)
        self._listener.close()
        for link in self.links:
            link.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self._target)
                except OSError:
                    client.close()
                    continue
                self._forget_ended()
                link = Link(client, server, self)
                if self._accepts_frozen:
                    link.flows.clear()
                self.links.append(link)

    def _forget_ended(self) -> None:
        for link in [link for link in self.links if link.over]:
            link.close()
            self.links.remove(link)
