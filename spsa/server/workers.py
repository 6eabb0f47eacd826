"""The endpoints of workers on other machines: the table of `worker_api`, files and uploads."""

import hashlib
import json
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import IO, Any

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from spsa import __version__
from spsa.core.json_values import from_json, to_json
from spsa.core.limits import Hash
from spsa.db.store import Store
from spsa.errors import OutOfRange
from spsa.files import MAX_BOOK, content
from spsa.protocol import ENGINE_BYTES, PROTOCOL, BuiltFile, HeldBuild
from spsa.server.people import TokenGuesses
from spsa.server.worker_api import FILE, REQUESTS, UPLOAD, JsonRequest, openapi
from spsa.server.worker_requests import (
    Endpoint,
    MachineTokens,
    Refused,
    not_permitted,
    out_of_range,
    parsed,
    received,
    received_json,
    told,
)

WORKER_THREADS = 8
"""Requests of workers that use the database at a time, each with a connection.

An SQLite file has one writer at a time, and those that wait for it sleep longer and longer: one
thread writes more than eight that disturb each other.
"""

UPLOAD_SECONDS = 900.0
"""How long an engine may take to arrive."""

UPLOADS = 2
"""Engines of one machine that may be on their way at a time."""

KEPT_BYTES = 2**29
CHUNK = 2**18


class Workers:
    """The endpoints; what asks the database runs in threads of its own."""

    def __init__(self, store: Store, guesses: TokenGuesses) -> None:
        self._store = store
        self._tokens = MachineTokens(store, guesses)
        self._files = SentFiles(store.file)
        self._threads = CapacityLimiter(1 if store.is_file else WORKER_THREADS)
        self._transfers = CapacityLimiter(2)
        self._uploading: list[str] = []  # a machine's name for each engine on its way

    def routes(self) -> list[Route]:
        return [
            Route("/worker/version", self._version),
            Route("/worker.pyz", self._worker_file),
            Route("/worker/openapi.json", self._openapi),
            Route(FILE, told(self._file)),
            Route(UPLOAD, told(self._upload), methods=["PUT"]),
            *(
                Route(asked.path, self._endpoint(asked), methods=[asked.method])
                for asked in REQUESTS
            ),
        ]

    def _endpoint(self, asked: JsonRequest) -> Endpoint:
        return told(partial(self._answer, asked))

    async def _answer(self, asked: JsonRequest, request: Request) -> Response:
        hashed = await self._token(request)
        body = b"" if asked.body is None else await received_json(request)
        found = await self._run(self._carry_out, asked, request, hashed, body)
        return Response(found, media_type="application/json")

    async def _token(self, request: Request) -> str:
        """The token's hash; one that was not right before is looked up before the body is read."""
        hashed = self._tokens.sent(request)
        if not self._tokens.was_right(hashed):
            await self._run(self._tokens.machine, request, hashed)
        return hashed

    def _carry_out(self, asked: JsonRequest, request: Request, hashed: str, body: bytes) -> bytes:
        try:
            value = None if asked.body is None else parsed(asked.body, body)
        except (Refused, OutOfRange):
            self._tokens.machine(request, hashed)  # who was revoked is told that first
            raise
        worker_id = getattr(getattr(value, "held", value), "worker_id", None)
        machine = self._tokens.machine(request, hashed, worker_id)
        found = to_json(asked.carry_out(self._store, machine, value))
        if asked.name is not None:
            found = {asked.name: found}
        return json.dumps(found or {}).encode()

    async def _run(self, function: Callable[..., Any], *values: Any) -> Any:
        return await to_thread.run_sync(function, *values, limiter=self._threads)

    async def _file(self, request: Request) -> Response:
        """The bytes of a file that a claim of this machine names."""
        sha256 = request.path_params["sha256"]
        if (why := Hash().refusal(sha256)) is not None:
            raise out_of_range(f"the hash {why}", "sha256")
        place = await self._run(self._place, request, self._tokens.sent(request), sha256)
        find = partial(self._files.find, sha256, place)
        file = await to_thread.run_sync(find, limiter=self._transfers)
        if file is None:
            sentence = f"neither the database nor the server's machine has the file {sha256}"
            raise Refused(404, "unknown_file", sentence)
        length = {"Content-Length": str(file.size)}
        return StreamingResponse(file.chunks(), 200, length, "application/octet-stream")

    def _place(self, request: Request, hashed: str, sha256: str) -> str:
        machine = self._tokens.machine(request, hashed)
        place = self._store.place_of(machine.name, sha256)
        if place is None:
            raise not_permitted(f"no batch or build that {machine.name!r} holds needs this file")
        return place

    async def _upload(self, request: Request) -> Response:
        """Keep one engine of a build until it is published."""
        hashed, path = self._tokens.sent(request), request.path_params
        if (side := path["side"]) not in ("plus", "minus"):
            raise Refused(404, "unknown_side", "an engine is `plus` or `minus`")
        machine, held = await self._run(self._held_build, request, hashed)
        if self._uploading.count(machine) >= UPLOADS:
            sentence = f"{machine!r} is sending {UPLOADS} engines already"
            raise Refused(429, "too_many", sentence, retry_after=5)
        self._uploading.append(machine)
        try:
            with tempfile.TemporaryFile() as file:
                await received(request, ENGINE_BYTES, UPLOAD_SECONDS, file.write)
                keep = partial(self._keep, held, side, file)
                built = await to_thread.run_sync(keep, limiter=self._transfers)
        finally:
            self._uploading.remove(machine)
        return JSONResponse({"sha256": built.sha256, "size": built.size})

    def _held_build(self, request: Request, hashed: str) -> tuple[str, HeldBuild]:
        """The build that a worker of the sender's machine holds, and the machine."""
        path = request.path_params
        machine = self._tokens.machine(request, hashed)
        if not machine.may_build:
            raise not_permitted(f"the machine {machine.name!r} was invited without --may-build")
        named = {"build_id": _number(path["build_id"]), "claim_id": path["claim_id"]}
        held = from_json(HeldBuild, {**named, "worker_id": 0})
        worker_id = self._store.may_upload(machine.name, held.build_id, held.claim_id)
        if worker_id is None:
            sentence = f"no worker of {machine.name!r} holds build {held.build_id} by this claim"
            raise Refused(409, "lease_lost", sentence)
        return machine.name, from_json(HeldBuild, {**named, "worker_id": worker_id})

    def _keep(self, held: HeldBuild, side: str, file: Any) -> BuiltFile:
        file.seek(0)
        return self._store.upload_build(held, side, file.read())

    async def _version(self, _request: Request) -> Response:
        """What every worker of every version asks first: the form of this never changes."""
        from spsa.server.worker_zip import packed_sha256

        sha256 = await to_thread.run_sync(packed_sha256)
        return JSONResponse({"version": __version__, "protocol": PROTOCOL, "sha256": sha256})

    async def _worker_file(self, _request: Request) -> Response:
        from spsa.server.worker_zip import packed

        return Response(await to_thread.run_sync(packed), media_type="application/octet-stream")

    async def _openapi(self, _request: Request) -> Response:
        return JSONResponse(openapi())


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 30 else text


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file on disk without a name; it is gone when nobody reads it any more."""

    size: int
    _file: IO[bytes]
    _lock: Lock = field(default_factory=Lock)

    def chunks(self) -> Iterator[bytes]:
        for start in range(0, self.size, CHUNK):
            with self._lock:
                self._file.seek(start)
                part = self._file.read(CHUNK)
            yield part


class SentFiles:
    """The files that were sent last, at most `KEPT_BYTES` of them and the one that was asked for.

    Their bytes are in memory only while one of them is read from the database.
    """

    def __init__(self, read: Callable[[str], bytes | None]) -> None:
        self._read = read
        self._lock = Lock()
        self._files: OrderedDict[str, SentFile] = OrderedDict()

    def find(self, sha256: str, place: str) -> SentFile | None:
        """The file with this hash, from the database or from `place` on this machine."""
        with self._lock:
            if sha256 not in self._files:
                found = self._read(sha256) or _kept(place, sha256)
                if found is None:
                    return None
                self._files[sha256] = _written(found)
            self._files.move_to_end(sha256)
            while len(self._files) > 1 and self._bytes > KEPT_BYTES:
                self._files.popitem(last=False)
            return self._files[sha256]

    @property
    def _bytes(self) -> int:
        return sum(file.size for file in self._files.values())


def _kept(place: str, sha256: str) -> bytes | None:
    """The bytes of a file that the master keeps here; None if they have another hash."""
    try:
        found = content(Path(place), MAX_BOOK) if place else b""
    except OSError:
        return None
    return found if hashlib.sha256(found).hexdigest() == sha256 else None


def _written(found: bytes) -> SentFile:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as anybody reads it
    file.write(found)
    file.flush()
    return SentFile(len(found), file)
