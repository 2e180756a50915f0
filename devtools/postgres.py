"""Starts a private, throw-away PostgreSQL: durable like a real one, gone without a trace when its owner ends.

    with server() as s:
        psycopg.connect(s.url)

The data lies in a temporary directory. The server listens on a free port of 127.0.0.1, with a random
password, and on a Unix socket in that directory, without one. Started by root it runs as `nobody`, because
PostgreSQL refuses root. A watcher process ends the server and removes the directory even if the owner is
killed.

`python -m devtools.postgres COMMAND...` runs a command with DATABASE_URL set to such a server.
"""

from __future__ import annotations

import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from devtools.account import Account
from devtools.binaries import NEWEST, ServerError, binaries

START_TIMEOUT = 60.0
STOP_TIMEOUT = 60.0
STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
# Below the range that the kernel gives to outgoing connections, so that a restart finds its port free again.
PORTS = range(20000, 32000)


class Server:
    """A PostgreSQL server in a directory of its own; `server()` makes and ends it."""

    def __init__(self, directory: Path, account: Account, settings: Mapping[str, Any]) -> None:
        self.directory, self.settings, self._account = directory, settings, account
        self.data = directory / "data"
        self.log = directory / "log"
        self.port = _free_port()
        self.password = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self._watcher = _watch(directory)

    @property
    def dsn(self) -> dict[str, Any]:
        """Keyword arguments for psycopg.connect()."""
        login = {"user": "postgres", "password": self.password, "dbname": "postgres"}
        return {"host": "127.0.0.1", "port": self.port, **login}

    @property
    def url(self) -> str:
        """The same as a URL."""
        return f"postgresql://postgres:{self.password}@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int | None:
        """Process id of the postmaster, or None while it is down."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def create(self, major: int) -> None:
        """Make the data directory of a major version. Raises ServerError."""
        self.bin = self._account.reachable(binaries(major), self.directory)
        password_file = self.directory / "password"
        password_file.write_text(self.password)
        command = [str(self.bin / "initdb"), f"--pgdata={self.data}", "--encoding=UTF8", "--locale=C.UTF-8"]
        command += ["--username=postgres", "--auth-local=trust", "--auth-host=scram-sha-256"]
        command += [f"--pwfile={password_file}", "--no-instructions", "--no-sync"]
        if major >= 16:
            # Stretching a random password would only slow down connecting.
            command += ["--set=scram_iterations=1"]
        done = subprocess.run(command, capture_output=True, **self.surroundings())
        if done.returncode:
            raise ServerError(f"initdb failed:\n{(done.stdout + done.stderr).decode(errors='replace')}")
        password_file.unlink()

    def adopt(self, other: Server) -> None:
        """Take programs and password of another server, whose data will be copied."""
        self.bin, self.password = other.bin, other.password

    def start(self) -> None:
        """Start, and return when connections are taken. Raises ServerError with the end of the log."""
        deadline = time.monotonic() + START_TIMEOUT
        while not self._started(deadline):
            time.sleep(0.1)

    def stop(self, mode: str = "fast") -> None:
        """Stop: "smart" waits for the clients to leave, "fast" disconnects them, "immediate" is a crash."""
        self._end(STOP_SIGNALS[mode])

    def restart(self, mode: str = "fast") -> None:
        """Stop in the given mode and start again on the same port."""
        self.stop(mode)
        self.start()

    def kill9(self) -> None:
        """Kill the postmaster as the kernel's out-of-memory killer would; start() recovers."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Stop and delete everything. Does nothing in a forked child of the owner."""
        if os.getpid() != self._owner:
            return
        try:
            self.stop()
        finally:
            assert self._watcher.stdin is not None
            self._watcher.stdin.close()
            self._watcher.wait(STOP_TIMEOUT)

    def _end(self, how: signal.Signals) -> None:
        if self._process and self.pid:
            self._process.send_signal(how)
            self._process.wait(STOP_TIMEOUT)
        self._tell_watcher(0)

    def _started(self, deadline: float) -> bool:
        """Start once; False when the remains of a killed server are not gone yet."""
        with self.log.open("ab") as log:
            already_said = log.tell()
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self.surroundings(),
            )
        self._tell_watcher(self._process.pid)
        while self._process.poll() is None and time.monotonic() < deadline:
            if self._is_ready():
                return True
            time.sleep(0.02)
        self.stop("immediate")
        said = self.log.read_bytes()[already_said:].decode(errors="replace")
        if "pre-existing shared memory block" in said and time.monotonic() < deadline:
            return False
        raise ServerError(f"PostgreSQL did not start:\n{said[-3000:]}")

    def _command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.directory,
            "shared_preload_libraries": "pg_stat_statements",
            **self.settings,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(self.bin / "postgres"), "-D", str(self.data), *options]

    def surroundings(self) -> dict[str, Any]:
        """Return the arguments of subprocess for programs that work on this server's files."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return {"cwd": self.directory, "env": env, **self._account.options}

    def _is_ready(self) -> bool:
        with suppress(FileNotFoundError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            # A killed predecessor leaves its own file behind: the first line must name this server.
            return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() in ("ready", "standby")
        return False

    def _tell_watcher(self, pid: int) -> None:
        assert self._watcher.stdin is not None
        self._watcher.stdin.write(b"%d\n" % pid)


@contextmanager
def server(settings: Mapping[str, Any] | None = None, version: int | None = None) -> Iterator[Server]:
    """Run a private server of the newest or the given major version, with postgresql.conf settings on top."""
    account = Account()
    s = Server(account.make_directory(), account, settings or {})
    try:
        s.create(version or NEWEST)
        s.start()
        yield s
    finally:
        s.close()


def _free_port() -> int:
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as candidate, suppress(OSError):
            candidate.bind(("127.0.0.1", port))
            return port
    raise ServerError(f"No free port on 127.0.0.1 between {PORTS.start} and {PORTS.stop}.")


def _watch(directory: Path) -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("watcher.py")
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(script), str(os.getpid()), str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        cwd="/",
        start_new_session=True,
    )


def main(command: list[str]) -> int:
    """Run a command on a private server; without a command keep the server up until Ctrl-C."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with server() as s:
        if command:
            return subprocess.run(command, env={**os.environ, "DATABASE_URL": s.url}).returncode
        print(f"DATABASE_URL={s.url}\nCtrl-C ends it.", flush=True)
        with suppress(KeyboardInterrupt):
            signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
