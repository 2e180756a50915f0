"""PgBouncer in transaction mode before the server, from Debian's package where the machine has it."""

import shutil
import signal
import socket
import subprocess

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from devtools.account import Account

from ..waiting import wait_until

PROGRAM = "pgbouncer"


def missing() -> str:
    """Return why there can be no pooler here, or nothing."""
    return "" if shutil.which(PROGRAM) else "pgbouncer is not installed (Debian: apt-get install pgbouncer)"


class Pooler:
    """A running PgBouncer; ``url`` leads through it."""

    def __init__(self, url: str) -> None:
        target = conninfo_to_dict(url)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = make_conninfo(url, host="127.0.0.1", port=self.port)
        account = Account()  # it refuses to be root
        self._options = account.options
        self._folder = account.make_directory()
        users = self._folder / "users"
        users.write_text(f'"{target["user"]}" "{target["password"]}"\n')
        self._ini = self._folder / "pgbouncer.ini"
        self._ini.write_text(
            f"[databases]\n* = host={target['host']} port={target['port']}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = plain\nauth_file = {users}\npool_mode = transaction\nmax_client_conn = 200\n"
            f"default_pool_size = 8\nignore_startup_parameters = extra_float_digits,options\n"
            f"application_name_add_host = 0\nlogfile = {self._folder / 'log'}\nserver_login_retry = 1\n"
        )
        for path in (users, self._ini):
            path.chmod(0o644)
        self._process = self._start()

    def restart(self) -> None:
        """Kill it, and start another one at the same place."""
        self._kill()
        self._process = self._start()

    def close(self) -> None:
        """Kill it, and remove what it wrote."""
        self._kill()
        shutil.rmtree(self._folder)

    def _kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def _start(self) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [PROGRAM, "-q", str(self._ini)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **self._options,
        )
        wait_until(lambda: self._answers() or process.poll() is not None, 10.0, "PgBouncer does not start")
        assert process.poll() is None, f"PgBouncer ended with {process.returncode}"
        return process

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1.0):
                return True
        except OSError:
            return False
