"""Keeps a remote worker at the version of its server.

A worker that runs from a zipapp replaces its own file and starts again with the same arguments, so
that a person never has to. It goes on as it is if the new file has another hash than the server
said, or does not run here. A worker that was installed is left as it is: a person replaces it.
"""

import hashlib
import logging
import os
import subprocess
import sys
import tempfile
import time
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import worker
from spsa import __version__
from spsa.errors import DatabaseUnreachable, OutdatedWorker, TuningError
from spsa.files import write_whole
from spsa.protocol import PROTOCOL
from spsa.text import printable

if TYPE_CHECKING:
    from worker.remote import RemoteStore, ServerVersion

log = logging.getLogger(__name__)

CHECK_SECONDS = 300.0
TRIAL_SECONDS = 60.0


class Restart(Exception):
    """The worker has another file now, and has to start it in its own place, with this token."""

    def carry_out(self) -> NoReturn:
        """Become the new version."""
        environment = {**os.environ, "SPSA_TOKEN": self.args[0]}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def _running_zipapp() -> Path | None:
    """The file of this process; None where the worker was installed."""
    archive = getattr(getattr(worker.__spec__, "loader", None), "archive", None)
    return None if archive is None else Path(archive).resolve()


class Updates:
    """Compares a remote worker with what its server needs, and replaces it; never a direct worker.

    `due_at` is when to check, of the monotonic clock. With `is_wanted` the worker is to `install`
    another version, and with `is_needed` this one cannot speak with the server.
    """

    def __init__(self, store: "RemoteStore | None" = None) -> None:
        self.store = store
        self._zipapp = zipapp = _running_zipapp()
        self._sha256 = hashlib.sha256(zipapp.read_bytes()).hexdigest() if zipapp else ""
        self._failed: set[str] = set()
        self._server: ServerVersion | None = None
        self.is_wanted = self.is_needed = False
        self.due_at = time.monotonic() if store else inf

    def check(self) -> None:
        """Ask the server which version it needs; DatabaseUnreachable if it does not respond.

        Raises OutdatedWorker: this worker cannot speak with the server, nor replace itself.
        TuningError: it cannot speak with the server, and what the server has does not help.
        """
        if self.store is None:  # a direct worker has no server
            return
        self._server = server = self.store.server_version()
        self.due_at = time.monotonic() + CHECK_SECONDS
        self.is_wanted, self.is_needed = False, server.protocol != PROTOCOL
        where = self.store.where
        if self._zipapp is None:
            if self.is_needed:
                raise OutdatedWorker(
                    f"{where} is of {server}, this worker of version {__version__} "
                    f"(protocol {PROTOCOL}): install version {server.version} here, or play with "
                    f"the server's own {where}/worker.pyz"
                )
        elif server.sha256 in self._failed:
            if self.is_needed:
                raise TuningError(f"the update to {server} has failed")
        elif server.sha256 != self._sha256:
            log.info("%s has %s: updating after the batches of now", where, server)
            self.is_wanted = True

    def install(self) -> None:
        """Replace this worker, which holds no batch now; returns only if it has to go on as it is.

        Restart: the new version is in place, and this process has to become it. Raises TuningError:
        the new version cannot be used, and the old one cannot play. DatabaseUnreachable: try later.
        """
        assert self.store and self._zipapp and self._server
        wanted = self._server.sha256
        try:
            data = self.store.worker_file()
            if (found := hashlib.sha256(data).hexdigest()) != wanted:
                raise TuningError(f"its worker.pyz hashes to {found}, expected {wanted}")
            _try(data)
            write_whole(self._zipapp, data)
        except DatabaseUnreachable:
            raise
        except (TuningError, OSError, subprocess.SubprocessError) as error:
            self._failed.add(wanted)
            self.is_wanted = False
            why = f"this worker cannot be updated to {self._server}: {error}"
            if self.is_needed:
                raise TuningError(f"{why}; this version cannot speak with the server") from None
            log.warning("%s; this version goes on", why)
            return
        log.info("updated to %s, starting it", self._server)
        raise Restart(self.store.token)


def _try(data: bytes) -> None:
    """Have this worker.pyz say its version; TuningError where it does not run here."""
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "worker.pyz"
        draft.write_bytes(data)
        flags = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv)]
        command = [sys.executable, *flags, str(draft), "--version"]
        done = subprocess.run(command, capture_output=True, timeout=TRIAL_SECONDS)
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it wrote nothing"]
        code, last = done.returncode, printable(lines[-1], 500)
        raise TuningError(f"the new version ended with exit code {code}: {last}")
