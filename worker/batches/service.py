"""A worker process from its settings: which server or database it plays for, as whom, and where."""

import logging
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from pathlib import Path
from socket import gethostname
from urllib.parse import urlsplit
from uuid import uuid4

import click

from spsa import __version__
from spsa.builds.requirements import BUILDS, provided
from spsa.errors import DatabaseUnreachable, InvalidInput, TablesMissing, TuningError
from spsa.files import MAX_TEXT, cache_folder, content, private_folder
from spsa.output import echo
from spsa.protocol import WorkerInfo, WorkerStore, is_loopback
from spsa.text import NAME_LENGTH, plural, printable
from spsa.uci.spawning import EngineLimits
from worker.batches.database_client import POLL, RECONNECT, DatabaseClient
from worker.batches.jobs import JobMaker
from worker.batches.loop import Worker
from worker.machine import usable_cores
from worker.runner.loop import Interrupts
from worker.runner.pool import Pool, tune_interpreter
from worker.settings import NO_DATABASE, Settings
from worker.update import Restart, Updates

log = logging.getLogger(__name__)

_TOKEN = re.compile(r"[!-~]{1,1000}")
_OTHERS = 0o077
_HOST_LENGTH = NAME_LENGTH - len("-4194304-000000")


def server_of(settings: Settings, environment: MutableMapping[str, str]) -> tuple[str, str] | None:
    """The URL of the server to play for, and this machine's token; None for a direct worker.

    The token leaves the environment.
    """
    token, file = environment.pop("SPSA_TOKEN", None), settings.token_file
    database, url = settings.database_url or settings.database_url_file, settings.server
    if url and database:
        raise click.UsageError("give --server or the URL of a database, not both")
    if not (url or database):
        url = environment.get("SPSA_SERVER")
        if url and (environment.get("DATABASE_URL") or environment.get("DATABASE_URL_FILE")):
            raise click.UsageError("SPSA_SERVER and DATABASE_URL are both set: unset one of them")
    if not url:
        if file or settings.plain_http:
            raise click.UsageError("--token-file and --plain-http go with --server")
        return None
    if file is not None:
        token = _token_in(file)
    if not token:
        raise click.UsageError(
            "a server needs this machine's token: set SPSA_TOKEN, or give --token-file; "
            "`spsa-master workers invite NAME` makes one"
        )
    if not _TOKEN.fullmatch(token):
        raise _token_fault(file or "SPSA_TOKEN", "has other characters than a token")
    return checked_url(url, plain_http=settings.plain_http), token


def checked_url(text: str, *, plain_http: bool) -> str:
    """The URL of a server, without a slash at its end.

    Raises InvalidInput: it is none, or sends the token to another machine unencrypted and
    `plain_http` does not allow that.
    """
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port
    except ValueError:
        host = None
    remedy = "give it as in https://tuning.example.org:8000"
    if not host or not text.isascii() or not text.isprintable() or " " in text:
        found = "it is no URL"
    elif parts.scheme not in ("http", "https") or parts.username or parts.query or parts.fragment:
        found = "it has more or other parts than https://, a host, a port and a path"
    elif parts.scheme == "http" and not (plain_http or is_loopback(host)):
        found = "it would send this machine's token over the network unencrypted"
        remedy = "use https://, or add --plain-http in a network that you trust"
    else:
        return text.rstrip("/")
    raise InvalidInput.of("--server", "server", found, remedy)


def _token_in(path: Path) -> str:
    """The token in a file of one line; a warning if other users may read it."""
    try:
        text = content(path, MAX_TEXT).decode("ascii", "replace").strip()
        is_open = path.stat().st_mode & _OTHERS
    except OSError as error:
        raise _token_fault(path, f"cannot be read: {error.strerror}") from None
    if is_open:
        echo(f"warning: other users can read {path} and the token in it: chmod 600", err=True)
    return text


def _token_fault(place: Path | str, found: str) -> InvalidInput:
    remedy = "it has to hold the token of this machine, and nothing else"
    return InvalidInput.of(place, "token", found, remedy)


def run_worker(settings: Settings, limits: EngineLimits) -> int:
    """Play the runs of the server or the database; the exit code.

    Restart: a remote worker has replaced its file, and has to start it.
    """
    server = server_of(settings, os.environ)
    service = Service(settings, limits, Interrupts().of_this_process())
    return service.run_direct() if server is None else service.run_remote(*server)


class Service:
    """One worker process; `received` are the interrupts that end it."""

    def __init__(self, settings: Settings, limits: EngineLimits, received: Interrupts) -> None:
        self._settings = settings
        self._limits = limits
        self._received = received
        host = printable(gethostname(), _HOST_LENGTH)
        self._info = WorkerInfo(
            name=settings.name or f"{host}-{os.getpid()}-{uuid4().hex[:6]}",
            host=host,
            platform=printable(f"{platform.system()} {platform.machine()}", NAME_LENGTH),
            cores=usable_cores(),
            concurrency=settings.concurrency,
            version=__version__,
            sandbox=str(limits),
            provides=_words(settings),
            only_runs=settings.only_runs,
            not_runs=settings.not_runs,
        )

    def run_direct(self) -> int:
        """Play for the database, when it can be used."""
        try:
            # Imported late: a remote worker has no SQLAlchemy.
            from worker.direct import machine_secret, opened, private_url
        except ModuleNotFoundError:
            raise click.UsageError(NO_DATABASE) from None
        received, backoff, told = self._received, replace(RECONNECT), ""
        url = private_url(self._settings.database_url, self._settings.database_url_file)
        self._info = replace(self._info, secret=machine_secret(cache_folder()))
        while not received.count:
            try:
                found = opened(url, lambda: bool(received.count))
            except (DatabaseUnreachable, TablesMissing) as error:
                if self._settings.once:
                    raise
                is_early = isinstance(error, TablesMissing)  # a master makes them
                seconds = POLL.cap if is_early else backoff.next(error)
                if not is_early or str(error) != told:
                    log.warning("%s; next attempt in %.1f s", error, seconds)
                told = str(error)
                received.wait(seconds)
            else:
                with closing(found) as store:
                    return self._play(store, store, Updates())
        return received.exit_code

    def run_remote(self, url: str, token: str) -> int:
        """Play for the server, as the version that it needs."""
        # Imported late: a direct worker needs no HTTP.
        from worker.remote import RemoteStore

        with (
            closing(RemoteStore(url, token)) as store,
            closing(RemoteStore(url, token)) as builds,  # for a thread of its own
        ):
            return self._play(store, builds, Updates(store))

    def _play(self, store: WorkerStore, builds: WorkerStore, updates: Updates) -> int:
        """Play with `store`; `builds` is for the thread that builds."""
        settings, worker = self._settings, None
        log.info("plays for %s, %s at a time", store.where, plural(settings.concurrency, "game"))
        tune_interpreter()
        try:
            with (
                Pool(settings.concurrency, self._limits) as pool,
                _view(self._info.name) as show,
                self._building(builds),
            ):
                client = DatabaseClient(store, self._info, settings.lease, RECONNECT)
                jobs = job_maker(settings, store)
                worker = Worker(client, pool, jobs, settings, self._received, show, updates)
                if updates.store is not None:
                    updates.store.on_chunk = worker.keep_leases
                return worker.run()
        finally:
            restarts = isinstance(sys.exception(), Restart)
            if settings.then and worker is not None and worker.has_ended and not restarts:
                _run_last(settings.then)

    def _building(self, store: WorkerStore) -> AbstractContextManager[object]:
        """The thread that builds engines for others, with --build."""
        if not self._settings.build:
            return nullcontext()
        # Imported late: a worker that does not build needs no builder.
        from worker.batches.builds import BuildThread

        folder = engine_folder(self._settings) / "builds"
        return BuildThread(store, self._info, self._settings.lease, folder)


def _run_last(command: str) -> None:
    log.info("ended by itself: running `%s`", command)
    if code := subprocess.run(command, shell=True).returncode:
        log.error("`%s` ended with %d", command, code)


def _view(name: str) -> AbstractContextManager[Callable[[Worker], None]]:
    """A live view where stderr is a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return nullcontext(lambda _: None)
    # Imported late: rich is only needed where there is a view.
    from worker.batches.live_view import LiveView

    return LiveView(name)


def job_maker(settings: Settings, store: WorkerStore) -> JobMaker:
    """InvalidInput, before any claim, where the folder for engines cannot be used."""
    return JobMaker(engine_folder(settings), store.file, _words(settings), settings.syzygy)


def engine_folder(settings: Settings) -> Path:
    """The folder for engines; InvalidInput where it cannot be used."""
    folder = settings.engines_cache or cache_folder() / "engines"
    try:
        return private_folder(folder, "the engine cache")
    except TuningError as error:
        reason = getattr(error.__cause__, "strerror", None) or str(error)
        remedy = "name another folder with --engines-cache"
        raise InvalidInput.of(folder, "cache", reason, remedy) from None


def _words(settings: Settings) -> tuple[str, ...]:
    """What this worker provides."""
    return (*provided(), *settings.labels, *((BUILDS,) if settings.build else ()))
