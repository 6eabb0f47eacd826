"""`compete --spsa --build`: builds engines for machines of this kind while games go on.

A thread of its own claims orders, carries them out and publishes the engines. It renews its lease
meanwhile, and stops the compiler when the lease is lost or no master wants the engines any more.
"""

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from spsa.builds.builder import Builder, BuildOrder, ordered
from spsa.builds.commands import BuildCancelled
from spsa.core.json_values import stored
from spsa.errors import DatabaseUnreachable, LeaseLost, NotPermitted, TuningError
from spsa.protocol import (
    RENEWALS,
    BuildClaim,
    BuildRenewal,
    BuildResult,
    BuildReturn,
    BuiltFile,
    HeldBuild,
    LeasedBuild,
    WorkerInfo,
    WorkerStore,
)
from spsa.text import FAILURE_LENGTH, printable
from worker.batches.database_client import RECONNECT, DatabaseClient

log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0


class BuildThread:
    """Carries out orders until its block ends, which stops the compiler.

    `lease` is in seconds; `work` is the folder for sources and what the compiler can use again.
    """

    def __init__(self, store: WorkerStore, info: WorkerInfo, lease: float, work: Path) -> None:
        self._store = store
        self._client = DatabaseClient(store, info, lease, RECONNECT)
        self._lease = lease
        self._work = work
        self._backoff = replace(RECONNECT)
        self._cancel: Callable[[], None] = lambda: None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._cancel()
        self._thread.join()

    def _run(self) -> None:
        claim_id = uuid4().hex
        while not self._stopping.is_set():
            seconds = _POLL_SECONDS
            try:
                build = self._client.ask(BuildClaim, claim_id=claim_id, lease_seconds=self._lease)
                if build is not None:
                    claim_id = uuid4().hex
                    self._carry_out(build)
                self._backoff.reset()
            except DatabaseUnreachable as error:  # the loop that plays says so
                seconds = self._backoff.next(error)
            except NotPermitted as error:
                log.error("builds nothing: %s", error)
                return
            except TuningError as error:
                log.error("cannot build engines: %s", error)
                seconds = self._backoff.next()
            self._stopping.wait(seconds)

    def _carry_out(self, build: LeasedBuild) -> None:
        try:
            order = stored(BuildOrder, build.recipe, "recipe")
            archive = self._store.file(build.archive_sha256) or b""
            log.info("builds two engines for %s", " ".join(order.kind))
            self._work.mkdir(exist_ok=True)
            with (
                ordered(order, archive, self._work, os.environ) as builder,
                ThreadPoolExecutor(1) as thread,
            ):
                self._cancel = builder.cancel
                if self._stopping.is_set():
                    raise BuildCancelled
                publishing = thread.submit(self._publish, build, order, builder)
                while not wait([publishing], self._lease / RENEWALS).done:
                    if not self._is_held(build):
                        builder.cancel()
                publishing.result()
        except BuildCancelled:
            self._retried(self._store.ask, BuildReturn(**_held(build)))
        except DatabaseUnreachable:
            raise  # the lease expires by itself
        except (TuningError, OSError) as error:
            reason = printable(str(error), FAILURE_LENGTH) or "it failed without a word"
            log.error("cannot build: %s", error)
            self._retried(self._store.ask, BuildReturn(**_held(build), reason=reason))

    def _is_held(self, build: LeasedBuild) -> bool:
        """Renew the lease; whether it is held, as far as can be known."""
        try:
            return self._store.ask(BuildRenewal(**_held(build), lease_seconds=self._lease))
        except DatabaseUnreachable:
            return True  # publishing will tell
        except TuningError as error:  # a token that was revoked
            log.error("cannot build: %s", error)
            return False

    def _publish(self, build: LeasedBuild, order: BuildOrder, builder: Builder) -> None:
        """Build both engines and hand them over."""
        plus, minus = builder.build(order.plus, order.minus)
        result = BuildResult(
            **_held(build),
            target=plus.target,
            requires=tuple(sorted({*plus.requires, *minus.requires})),
            plus=BuiltFile(sha256=plus.sha256, size=plus.size, bench=plus.bench),
            minus=BuiltFile(sha256=minus.sha256, size=minus.size, bench=minus.bench),
        )
        for side, engine in (("plus", plus), ("minus", minus)):
            with suppress(LeaseLost):  # the last request says whether it was published before
                content = engine.path.read_bytes()
                self._retried(self._store.upload_build, build, side, content)
        outcome = self._retried(self._store.ask, result)
        log.info("two engines for %s: %s", " ".join(order.kind), outcome)

    def _retried(self, call: Callable[..., object], *values: object) -> object:
        """Repeat a call until the database responds, which it answers as if called once."""
        while True:
            try:
                return call(*values)
            except DatabaseUnreachable as error:
                if self._stopping.wait(self._backoff.next(error)):
                    raise


def _held(build: HeldBuild) -> dict[str, Any]:
    return {name: getattr(build, name) for name in ("worker_id", "build_id", "claim_id")}
