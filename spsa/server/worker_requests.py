"""What all requests of workers have: a token, a body within limits, answers to their faults."""

import json
import logging
from collections.abc import Awaitable, Callable
from hashlib import sha256
from hmac import compare_digest
from typing import TypeVar

from anyio import fail_after
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from spsa.core.json_values import from_json
from spsa.db.batch_tables import Machine
from spsa.db.store import Store
from spsa.errors import (
    DatabaseUnreachable,
    IllegalTransition,
    LeaseLost,
    NameTaken,
    NotPermitted,
    OutOfRange,
    ReportConflict,
    SchemaMismatch,
    TooManyRequests,
    TuningError,
)
from spsa.protocol import PROTOCOL
from spsa.server.people import TokenGuesses, bearer, client_address, too_many_guesses

BODY_BYTES = 10**6
BODY_SECONDS = 30.0
"""How long a body of JSON may take to arrive, all of it."""

PROTOCOL_HEADER = "X-Spsa-Protocol"
TOO_MANY_SECONDS = 10
"""When a machine that has all it may have should ask again."""

UNREACHABLE_SECONDS = 5

Value = TypeVar("Value")
Endpoint = Callable[[Request], Awaitable[Response]]

log = logging.getLogger(__name__)


class Refused(Exception):
    """A request that is not carried out; `retry_after` are seconds."""

    def __init__(
        self,
        status: int,
        kind: str,
        sentence: str,
        field: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        self.status = status
        self.body = {"error": sentence, "field": field, "kind": kind}
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        super().__init__(sentence)

    @property
    def response(self) -> Response:
        return JSONResponse(self.body, self.status, self.headers)


def out_of_range(sentence: str, field: str) -> Refused:
    return Refused(422, "out_of_range", sentence, field)


def told(endpoint: Endpoint) -> Endpoint:
    """The endpoint, with its errors as the responses that a worker understands."""

    async def telling(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refused as refused:
            return refused.response
        except TuningError as error:
            return _refusal(request.url.path, error).response

    return telling


_CONFLICTS = {
    LeaseLost: "lease_lost",
    ReportConflict: "conflict",
    NameTaken: "name_taken",
    IllegalTransition: "not_registered",
}


def _refusal(path: str, error: TuningError) -> Refused:
    """What a client is told of an error of the store.

    A message of the database may name logins and addresses: the log gets it, the client does not.
    """
    if (kind := _CONFLICTS.get(type(error))) is not None:
        return Refused(409, kind, str(error))
    if isinstance(error, OutOfRange):
        return Refused(422, "out_of_range", str(error), error.field)
    if isinstance(error, TooManyRequests):
        return Refused(429, "too_many", str(error), retry_after=TOO_MANY_SECONDS)
    log.warning("%s: %s", path, error)
    if isinstance(error, DatabaseUnreachable | SchemaMismatch | NotPermitted):
        sentence = "the server cannot use its database now; ask again later"
        return Refused(503, "unreachable", sentence, retry_after=UNREACHABLE_SECONDS)
    return Refused(500, "defect", "the database could not do this; the server's log says why")


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
        hashed = sha256(token.encode()).hexdigest()
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
        if found is None or not compare_digest(found[0].secret_sha256, hashed):
            self._known.discard(hashed)
            self._guesses.add_wrong(client_address(request))
            raise Refused(401, "unknown_token", "the server does not know this token")
        machine, owner = found
        self._known.add(hashed)
        if machine.revoked_at is not None:
            raise Refused(403, "revoked", f"the machine {machine.name!r} was revoked")
        if worker_id is not None and owner is None:
            raise Refused(409, "not_registered", f"worker {worker_id} is not registered")
        if worker_id is not None and owner != machine.name:
            raise not_permitted(f"worker {worker_id} is one of another machine")
        return machine


def not_permitted(sentence: str) -> Refused:
    return Refused(403, "not_permitted", sentence)


async def received(
    request: Request, most: int, seconds: float, take: Callable[[bytes], object]
) -> None:
    """Read a body of at most `most` bytes within so many seconds, part by part."""
    size, declared = 0, request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > most:
        raise _too_large(most)
    try:
        with fail_after(seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise _too_large(most)
                take(part)
    except TimeoutError:
        refused = Refused(408, "slow", f"the body did not arrive within {seconds:g} seconds")
        refused.headers["Connection"] = "close"
        raise refused from None
    except ClientDisconnect:
        raise Refused(400, "incomplete", "the request ended before its body") from None


async def received_json(request: Request) -> bytes:
    body = bytearray()
    await received(request, BODY_BYTES, BODY_SECONDS, body.extend)
    return bytes(body)


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


def _too_large(most: int) -> Refused:
    return Refused(413, "too_large", f"the body has more than {most:,} bytes")
