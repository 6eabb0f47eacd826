"""The endpoints of workers on other machines: requests with a token, files and uploads."""

import asyncio
import hashlib
import json
import re
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from spsa import __version__
from spsa.core.json_values import HASH, from_json, to_json
from spsa.db import Store
from spsa.db.tables import Machine
from spsa.errors import OutOfRange, revoked
from spsa.protocol import ENGINE_BYTES, PROTOCOL, REQUESTS, BuildClaim, BuiltFile, HeldBuild
from spsa.protocol import Request as Asked
from spsa.server.people import TokenGuesses, bearer, client_address, too_many_guesses
from spsa.server.receiving import (
    PROTOCOL_HEADER,
    Refused,
    not_permitted,
    out_of_range,
    received,
    received_whole,
    refuse_unless_builder,
)
from spsa.server.worker_files import SentFiles, packed, packed_sha256

BODY_BYTES = 10**6

WORKER_THREADS = 8
"""Requests of workers that use the database at a time, each with a connection.

An SQLite file has one writer at a time, and those that wait for it sleep longer and longer: one
thread writes more than eight that disturb each other.
"""

UPLOAD_SECONDS = 900.0
"""How long an engine may take to arrive."""

UPLOADS = 2
"""Engines of one machine that may be on their way at a time."""

TRANSFERS = 2
"""Files that are read or kept at a time, each whole in memory."""

_BYTES = "application/octet-stream"

Value = TypeVar("Value")


class Workers:
    """The endpoints; what asks the database runs in threads of its own."""

    def __init__(self, store: Store, guesses: TokenGuesses) -> None:
        self._store = store
        self._tokens = MachineTokens(store, guesses)
        self._files = SentFiles(store.file)
        self._threads = ThreadPoolExecutor(1 if store.is_file else WORKER_THREADS)
        self._transfers = CapacityLimiter(TRANSFERS)
        self._uploading: list[str] = []  # a machine's name for each engine on its way

    def routes(self) -> list[Route]:
        return [
            *(
                Route(f"/worker/{kind.path}", partial(self._answer, kind), methods=["POST"])
                for kind in REQUESTS
            ),
            Route("/worker/files/{sha256}", self._file),
            Route("/worker/builds/{build_id}/{claim_id}/{side}", self._upload, methods=["PUT"]),
            Route("/worker/version", _version),
            Route("/worker.pyz", lambda _: Response(packed(), media_type=_BYTES)),
        ]

    async def _answer(self, kind: type[Asked[Any]], request: Request) -> Response:
        hashed = await self._token(request)
        body = await received_whole(request, BODY_BYTES)
        found = await self._run(self._carry_out, kind, request, hashed, body)
        return Response(found, media_type="application/json")

    async def _token(self, request: Request) -> str:
        """The token's hash; one that was not right before is looked up before the body is read."""
        hashed = self._tokens.sent(request)
        if not self._tokens.was_right(hashed):
            await self._run(self._tokens.machine, request, hashed)
        return hashed

    def _carry_out(
        self, kind: type[Asked[Any]], request: Request, hashed: str, body: bytes
    ) -> bytes:
        try:
            asked = parsed(kind, body)
        except (Refused, OutOfRange):
            self._tokens.machine(request, hashed)  # who was revoked is told that first
            raise
        worker_id = getattr(getattr(asked, "held", asked), "worker_id", None)
        machine = self._tokens.machine(request, hashed, worker_id)
        if isinstance(asked, BuildClaim):
            refuse_unless_builder(machine)
        return json.dumps({"reply": to_json(self._store.ask(asked, machine.name))}).encode()

    async def _run(self, function: Callable[..., Any], *values: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *values)

    async def _file(self, request: Request) -> Response:
        """The bytes of a file that a claim of this machine names."""
        sha256 = request.path_params["sha256"]
        if (why := HASH.refusal(sha256)) is not None:
            raise out_of_range(f"the hash {why}", "sha256")
        place = await self._run(self._place, request, self._tokens.sent(request), sha256)
        find = partial(self._files.find, sha256, place)
        file = await to_thread.run_sync(find, limiter=self._transfers)
        if file is None:
            sentence = f"neither the database nor the server's machine has the file {sha256}"
            raise Refused(404, "unknown_file", sentence)
        return FileResponse(file, media_type=_BYTES)

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
        refuse_unless_builder(machine)
        named = {"build_id": _number(path["build_id"]), "claim_id": path["claim_id"]}
        held = from_json(HeldBuild, {**named, "worker_id": 0})  # which is looked up now
        worker_id = self._store.may_upload(machine.name, held.build_id, held.claim_id)
        if worker_id is None:
            sentence = f"no worker of {machine.name!r} holds build {held.build_id} by this claim"
            raise Refused(409, "lease_lost", sentence)
        return machine.name, replace(held, worker_id=worker_id)

    def _keep(self, held: HeldBuild, side: str, file: Any) -> BuiltFile:
        file.seek(0)
        return self._store.upload_build(held, side, file.read())


def _version(_request: Request) -> Response:
    """What every worker of every version asks first: the form of this never changes."""
    return JSONResponse({"version": __version__, "protocol": PROTOCOL, "sha256": packed_sha256()})


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch("[0-9]{1,19}", text) else text


class MachineTokens:
    """Which machine sent a request; who sends wrong tokens has to wait.

    The methods but `sent` ask the database.
    """

    def __init__(self, store: Store, guesses: TokenGuesses) -> None:
        self._store = store
        self._guesses = guesses
        self._known: set[str] = set()

    def sent(self, request: Request) -> str:
        """The hash of a request's token, which may be that of no machine.

        Machines whose token was right before do not wait for others at the same address who guess.
        """
        version = request.headers.get(PROTOCOL_HEADER, str(PROTOCOL))
        if version != str(PROTOCOL):
            sentence = f"this server speaks protocol {PROTOCOL}, not {version[:20]!a}"
            raise Refused(426, "outdated", sentence)
        if (token := bearer(request)) is None:
            raise Refused(401, "no_token", "this needs a header `Authorization: Bearer TOKEN`")
        hashed = hashlib.sha256(token.encode()).hexdigest()
        seconds = self._guesses.seconds_to_wait(client_address(request))
        if seconds and hashed not in self._known:
            sentence = too_many_guesses(seconds)
            raise Refused(429, "guessing", sentence, retry_after=seconds)
        return hashed

    def was_right(self, hashed: str) -> bool:
        return hashed in self._known

    def machine(self, request: Request, hashed: str, worker_id: int | None = None) -> Machine:
        """The machine with this token, to which the worker belongs."""
        found = self._store.machine_of_token(hashed, worker_id)
        if found is None:
            self._guesses.add_wrong(client_address(request))
            raise Refused(401, "unknown_token", "the server does not know this token")
        machine, owner = found
        self._known.add(hashed)
        if machine.revoked_at is not None:
            raise Refused(403, "revoked", revoked(machine.name))
        if worker_id is not None and owner is None:
            raise Refused(409, "not_registered", f"worker {worker_id} is not registered")
        if worker_id is not None and owner != machine.name:
            raise not_permitted(f"worker {worker_id} is one of another machine")
        return machine


def parsed(kind: type[Value], body: bytes) -> Value:
    """The value of a body of JSON.

    Raises:
        OutOfRange: names the first field that is wrong.
    """
    try:
        value: Value = from_json(kind, json.loads(body))
    except (ValueError, RecursionError) as error:  # too deep to be read, or to be shown
        raise out_of_range(f"the body is no JSON: {str(error)[:200]}", "body") from None
    return value
