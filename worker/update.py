"""Keeps a remote worker at the version of its server.

A worker that runs from a zipapp replaces its own file and starts again with the same arguments, so
that a person never has to. Before that, the new file has to prove itself: it is started with
`SPSA_WORKER_TRIAL`, and then has to end with exit code 0 after it has registered. Until it has done
so the old worker stays in its place, and goes on if the new one fails. A worker that was installed
is replaced by whoever installed it, and only says so.
"""

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import worker
from spsa import __version__
from spsa.errors import DatabaseUnreachable, OutdatedWorker, TuningError, UpdateFailed
from spsa.files import write_whole
from spsa.protocol import PROTOCOL
from spsa.text import printable

if TYPE_CHECKING:
    from worker.remote import RemoteStore, ServerVersion

log = logging.getLogger(__name__)

TRIAL = "SPSA_WORKER_TRIAL"
"""The variable that tells a new version to end after it has registered; it never changes."""

UPDATED = "SPSA_WORKER_UPDATED"
"""The variable with the hash that this worker was updated to, and when in Unix time."""

CHECK_SECONDS = 300.0
QUIET_SECONDS = 600.0
"""After an update so long no other: two servers of different versions behind one address would
otherwise make a worker change between them without an end."""

TRIAL_SECONDS = 120.0
_LOOK_SECONDS = 0.1


class Restart(Exception):
    """The worker has another file now, and has to start it in its own place."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        super().__init__("this worker starts its new version")

    def carry_out(self) -> int:
        """Become the new version; on Windows, run it and return its exit code."""
        command = [sys.executable, *sys.orig_argv[1:]]
        sys.stdout.flush()
        sys.stderr.flush()
        if sys.platform != "win32":
            os.execve(sys.executable, command, self.environment)
        return subprocess.call(command, env=self.environment)


def running_zipapp() -> Path | None:
    """The file of this process; None where the worker was installed."""
    archive = getattr(getattr(worker.__spec__, "loader", None), "archive", None)
    return None if archive is None else Path(archive).resolve()


class Updates:
    """Whether another version of the worker is needed: never by a direct worker, which this is for.

    `due_at` is when to check, of the monotonic clock. With `is_wanted` the worker is to `install`
    another version, and with `is_needed` this one cannot speak with the server.
    """

    due_at = inf
    is_wanted = is_needed = False

    def check(self) -> None:
        """Find out which version is needed."""

    def install(self, is_stopping: Callable[[], bool]) -> None:
        """Become that version; returns only if this one has to go on."""


class SelfUpdate(Updates):
    """Compares a remote worker with what its server needs, and replaces it.

    `token` is passed on to the new version, `name` is that of this worker, and `zipapp` the file
    that it runs from, whose hash is that of now.
    """

    def __init__(
        self,
        store: "RemoteStore",
        token: str,
        name: str,
        zipapp: Path | None,
        environment: Mapping[str, str],
    ) -> None:
        self._store = store
        self._name = name
        self._zipapp = zipapp
        self._sha256 = _sha256(zipapp) if zipapp else ""
        self._environment = {**environment, "SPSA_TOKEN": token}
        self._failed: set[str] = set()
        self._server: ServerVersion | None = None
        self._said = ""
        self.due_at = time.monotonic()

    def check(self) -> None:
        """Ask the server which version it needs.

        Raises:
            DatabaseUnreachable: the server does not respond.
            OutdatedWorker: this worker cannot speak with the server, nor replace itself.
            UpdateFailed: it cannot speak with the server, and what the server has does not help.
        """
        self._server = server = self._store.server_version()
        self.due_at = time.monotonic() + CHECK_SECONDS
        self.is_wanted, self.is_needed = False, server.protocol != PROTOCOL
        if self._zipapp is None:
            self._compare_installed(server)
        elif server.sha256 != self._sha256:
            self._compare(server, self._zipapp)

    def install(self, is_stopping: Callable[[], bool]) -> None:
        """Replace this worker, which holds no batch now; returns only if it has to go on as it is.

        Raises:
            Restart: the new version is in place, and this process has to become it.
            DatabaseUnreachable: the server does not respond; a later attempt may succeed.
            UpdateFailed: the new version cannot be used, and the old one cannot play.
        """
        assert self._zipapp is not None and self._server is not None
        wanted = self._server.sha256
        try:
            # Another worker that runs from the same file may have replaced it.
            if _sha256(self._zipapp) != wanted:
                self._replace(self._zipapp, wanted, is_stopping)
        except DatabaseUnreachable:
            raise
        except (TuningError, OSError) as error:
            self._failed.add(wanted)
            self.is_wanted = False
            self._go_on(f"this worker cannot be updated to {_named(self._server)}: {error}")
            return
        log.info("updated to %s, starting it", _named(self._server))
        raise Restart({**self._environment, UPDATED: f"{wanted}:{time.time():.0f}"})

    def _compare_installed(self, server: "ServerVersion") -> None:
        found = f"{self._store.where} is of {_named(server)}, this worker of version {__version__}"
        if self.is_needed:
            raise OutdatedWorker(
                f"{found} (protocol {PROTOCOL}): install version {server.version} here, or play "
                f"with the server's own {self._store.where}/worker.pyz"
            )
        if server.version != __version__:
            self._say_once(logging.INFO, f"{found}; they understand each other")

    def _compare(self, server: "ServerVersion", zipapp: Path) -> None:
        """Decide whether to update, for a server with another worker.pyz than this one."""
        where = self._store.where
        if TRIAL in self._environment:
            raise DatabaseUnreachable(f"{where} has another worker.pyz again")
        updated_to, _, since = self._environment.get(UPDATED, "").partition(":")
        if server.sha256 == updated_to:
            raise UpdateFailed(
                f"this worker has updated itself to {_named(server)}, but {zipapp} still is "
                f"another one: download it again from {where}/worker.pyz"
            )
        if server.sha256 in self._failed:
            if self.is_needed:
                self._go_on(f"the update to {_named(server)} has failed before")
        elif since.isdigit() and 0 <= time.time() - int(since) < QUIET_SECONDS:
            self._go_on(
                f"{where} had another worker.pyz less than {QUIET_SECONDS:.0f} s ago; "
                "are there servers of different versions behind this address?"
            )
        else:
            log.info("%s has %s: updating after the batches of now", where, _named(server))
            self.is_wanted = True

    def _go_on(self, why: str) -> None:
        """Go on as this version with a warning; UpdateFailed if the server does not allow it."""
        if self.is_needed:
            raise UpdateFailed(f"{why}; this version cannot speak with the server")
        self._say_once(logging.WARNING, f"{why}; this version goes on")

    def _say_once(self, level: int, text: str) -> None:
        if text != self._said:
            log.log(level, "%s", text)
        self._said = text

    def _replace(self, zipapp: Path, wanted: str, is_stopping: Callable[[], bool]) -> None:
        """Fetch the new file, try it, and put it in the place of the old one: NAME.previous."""
        data = self._store.worker_file()
        if (found := hashlib.sha256(data).hexdigest()) != wanted:
            raise TuningError(f"its worker.pyz hashes to {found}, expected {wanted}")
        with tempfile.TemporaryDirectory() as folder:
            draft = Path(folder) / zipapp.name
            draft.write_bytes(data)
            self._try(draft, is_stopping)
        if _sha256(zipapp) == self._sha256:
            shutil.copy2(zipapp, zipapp.with_name(f"{zipapp.name}.previous"))
        write_whole(zipapp, data)

    def _try(self, draft: Path, is_stopping: Callable[[], bool]) -> None:
        """Have the new version register.

        Raises:
            TuningError: it did not; the message has the last line that it wrote.
            DatabaseUnreachable: it could not reach the server, or this worker has to stop.
        """
        place = len(sys.orig_argv) - len(sys.argv)  # of the file in this process's command line
        command = [sys.executable, *sys.orig_argv[1:place], str(draft), *sys.argv[1:]]
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [*command, "--name", self._name],
                env={**self._environment, TRIAL: "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
            code = _exit_code(process, is_stopping)
            errors.seek(0)
            lines = errors.read().decode("utf-8", "replace").strip().splitlines()
        last = printable("; ".join(lines[-2:]) or "it wrote nothing", 500)
        if code == DatabaseUnreachable.exit_code or is_stopping():
            raise DatabaseUnreachable(f"the trial of the new version was broken off: {last}")
        if code != 0:
            took = "did not register in time" if code is None else f"ended with exit code {code}"
            raise TuningError(f"the new version {took}: {last}")


def _exit_code(process: "subprocess.Popen[bytes]", is_stopping: Callable[[], bool]) -> int | None:
    """The exit code of the trial; None if it took too long and was killed."""
    deadline = time.monotonic() + TRIAL_SECONDS
    while process.poll() is None and time.monotonic() < deadline and not is_stopping():
        time.sleep(_LOOK_SECONDS)
    code = process.poll()
    process.kill()
    process.wait()
    return code


def _named(server: "ServerVersion") -> str:
    return printable(
        f"version {server.version} (protocol {server.protocol}, worker.pyz {server.sha256[:12]})",
        200,
    )


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
