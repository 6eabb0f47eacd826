"""`compete --spsa`: a worker process from its settings."""

import logging
import os
import platform
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from secrets import token_hex
from socket import gethostname
from uuid import uuid4

from spsa import __version__
from spsa.builds.requirements import BUILDS, provided
from spsa.db.store import Store, WorkerInfo, open_store
from spsa.errors import DatabaseUnreachable, Fault, InvalidInput, TablesMissing, TuningError
from spsa.security.files import cache_folder, private_folder
from spsa.security.keys import TrustKey
from spsa.text import NAME_LENGTH, printable
from worker.batches.active_batch import View
from worker.batches.database_client import RECONNECT, Backoff, DatabaseClient
from worker.batches.engine_cache import EngineCache, default_folder
from worker.batches.loop import Worker, WorkerOptions
from worker.machine import usable_cores
from worker.runner.interrupts import Interrupts, interrupts
from worker.runner.pool import Pool, tune_interpreter
from worker.uci.engine import UciTimeouts
from worker.uci.spawning import EngineLimits

log = logging.getLogger(__name__)

_FILE = "machine-secret"


def machine_secret(folder: Path) -> str:
    """The secret in this folder, made by the first call; 64 hexadecimal digits.

    Where the folder cannot be used, the secret lasts as long as this process, and the database
    takes the process for another machine.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _stored(folder / _FILE)
    except OSError as error:
        place = printable(str(folder), NAME_LENGTH)
        log.warning("cannot keep this machine's secret in %s: %s", place, error.strerror)
        return token_hex(32)


def _stored(file: Path) -> str:
    """Write it under another name and link it, so that no process reads half of it."""
    if not file.exists():
        fresh = file.with_name(f"{_FILE}.{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(token_hex(32))
        try:
            os.link(fresh, file)
        except FileExistsError:
            pass  # another process of this machine was faster
        finally:
            fresh.unlink()
    return file.read_text(encoding="ascii").strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """The settings of one worker process; times in seconds."""

    database_url: str
    concurrency: int
    name: str | None = None
    only_runs: tuple[str, ...] = ()
    not_runs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    lease: float = 60.0
    engines_cache: Path | None = None
    build: bool = False
    trust_key: TrustKey | None = None
    options: WorkerOptions = field(default_factory=WorkerOptions)
    timeouts: UciTimeouts = field(default_factory=UciTimeouts)
    limits: EngineLimits = field(default_factory=EngineLimits)
    log_format: str = "text"


def serve(service: WorkerSettings) -> int:
    """Play the runs of a database; the exit code."""
    with interrupts() as received:
        store = _opened_store(service, received)
        if store is None:
            return received.exit_code
        log.info("connected to %s, %d games at a time", store.where, service.concurrency)
        tune_interpreter()
        with store, Pool(service.concurrency, service.timeouts, service.limits) as pool:
            info = _info(service)
            client = DatabaseClient(store, info, service.lease, RECONNECT)
            engines = engine_cache(service, store)
            with _view(service, info.name) as view, _building(service, info, store):
                return Worker(client, pool, engines, service.options, received, view).run()


def _building(
    service: WorkerSettings, info: WorkerInfo, store: Store
) -> AbstractContextManager[object]:
    """The thread that builds engines for others, with --build."""
    if not service.build:
        return nullcontext()
    # Imported late: a worker that does not build needs no builder.
    from worker.batches.builds import BuildThread

    return BuildThread(store, info, service.lease, engine_folder(service) / "builds")


def _view(service: WorkerSettings, name: str) -> AbstractContextManager[View | None]:
    """A live view where stderr is a terminal, and the log is for people."""
    if service.log_format != "text" or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return nullcontext()
    # Imported late: rich is only needed where there is a view.
    from worker.batches.live_view import LiveView

    return LiveView(name)


def _opened_store(service: WorkerSettings, received: Interrupts) -> Store | None:
    """Wait for the database; None when an interrupt ended the wait."""
    backoff = Backoff(RECONNECT, Random())
    give_up_at = time.monotonic() + (service.options.idle_timeout or float("inf"))
    while not received.count:
        try:
            return open_store(
                service.database_url, durable=False, is_stopping=lambda: received.count > 0
            )
        except (DatabaseUnreachable, TablesMissing) as error:
            if service.options.once or time.monotonic() >= give_up_at:
                raise
            seconds = backoff.next()
            log.warning("%s; next attempt in %.1f s", error, seconds)
            received.wait(seconds)
    return None


def engine_cache(service: WorkerSettings, store: Store) -> EngineCache:
    """The cache of engines; InvalidInput, before any claim, where its folder cannot be used."""
    folder = engine_folder(service)
    return EngineCache(folder, store.engine_bytes, service.trust_key, _words(service))


def engine_folder(service: WorkerSettings) -> Path:
    """The folder for engines; InvalidInput, before any claim, where it cannot be used."""
    folder = service.engines_cache or default_folder()
    try:
        return private_folder(folder, "the engine cache")
    except TuningError as error:
        reason = getattr(error.__cause__, "strerror", None) or str(error)
        remedy = "name another folder with --engines-cache"
        fault = Fault(file=str(folder), line=None, name="cache", found=reason, remedy=remedy)
        raise InvalidInput([fault]) from None


def _words(service: WorkerSettings) -> tuple[str, ...]:
    """What this worker provides."""
    return (*provided(), *service.labels, *((BUILDS,) if service.build else ()))


def _info(service: WorkerSettings) -> WorkerInfo:
    host = printable(gethostname(), NAME_LENGTH - len("-4194304-000000"))
    return WorkerInfo(
        name=service.name or f"{host}-{os.getpid()}-{uuid4().hex[:6]}",
        host=host,
        platform=printable(f"{platform.system()} {platform.machine()}", NAME_LENGTH),
        cores=usable_cores(),
        concurrency=service.concurrency,
        version=__version__,
        confinement=str(service.limits),
        provides=_words(service),
        only_runs=service.only_runs,
        not_runs=service.not_runs,
        secret=machine_secret(cache_folder()),
    )
