"""How the body of a request is received, and how one of a worker is refused."""

import asyncio
import logging
from collections.abc import Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from spsa.db.tables import Machine
from spsa.errors import (
    DatabaseUnreachable,
    NotPermitted,
    OutOfRange,
    SchemaMismatch,
    TooManyRequests,
)
from spsa.protocol import CONFLICTS

PROTOCOL_HEADER = "X-Spsa-Protocol"
TOO_MANY_SECONDS = 10
"""When a machine that has all it may have should ask again."""

UNREACHABLE_SECONDS = 5

BODY_SECONDS = 30.0
"""How long a body that is no engine may take to arrive, all of it."""

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


def not_permitted(sentence: str) -> Refused:
    return Refused(403, "not_permitted", sentence)


def refused_by(path: str, error: Exception) -> Refused:
    """What a client is told of an error of the store.

    A message of the database may name logins and addresses: the log gets it, the client does not.
    """
    for kind, conflict in CONFLICTS.items():
        if isinstance(error, conflict):
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


def refuse_unless_builder(machine: Machine) -> None:
    if not machine.may_build:
        raise not_permitted(f"the machine {machine.name!r} was invited without --may-build")


async def received(
    request: Request, most: int, seconds: float, take: Callable[[bytes], object]
) -> None:
    """Read a body of at most `most` bytes within so many seconds, part by part."""
    size, declared = 0, request.headers.get("content-length", "")
    too_large = Refused(413, "too_large", f"the body has more than {most:,} bytes")
    if declared.isdigit() and int(declared) > most:
        raise too_large
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise too_large
                take(part)
    except TimeoutError:
        refused = Refused(408, "slow", f"the body did not arrive within {seconds:g} seconds")
        refused.headers["Connection"] = "close"
        raise refused from None
    except ClientDisconnect:
        raise Refused(400, "incomplete", "the request ended before its body") from None


async def received_whole(request: Request, most: int) -> bytes:
    body = bytearray()
    await received(request, most, BODY_SECONDS, body.extend)
    return bytes(body)
