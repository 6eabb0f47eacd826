"""How a request of a worker is refused."""

import logging

from starlette.responses import JSONResponse, Response

from spsa.db.tables import Machine
from spsa.errors import (
    DatabaseUnreachable,
    NotPermitted,
    OutOfRange,
    SchemaMismatch,
    TooManyRequests,
    TuningError,
)
from spsa.protocol import CONFLICTS

PROTOCOL_HEADER = "X-Spsa-Protocol"
TOO_MANY_SECONDS = 10
"""When a machine that has all it may have should ask again."""

UNREACHABLE_SECONDS = 5

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


def refused_by(path: str, error: TuningError) -> Refused:
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
