"""What a worker may ask, over HTTP; the other way is the database.

`RemoteStore` raises what the queries of the database raise, so that a worker does not care which of
the two it has. Nothing here repeats a request: `DatabaseClient` does, with the same ids.
"""

# from_json compares what is returned with its type
# mypy: disable-error-code="no-any-return"

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError, SSLError

from spsa import __version__
from spsa.builds.artifacts import MAX_BYTES
from spsa.core.json_values import from_json, to_json
from spsa.errors import (
    DatabaseUnreachable,
    NotPermitted,
    OutOfRange,
    SchemaMismatch,
    TooManyRequests,
    TuningError,
)
from spsa.protocol import CONFLICTS, PROTOCOL, BuiltFile, HeldBuild, Reply, Request
from spsa.text import FAILURE_LENGTH, printable

USUAL = urllib3.Timeout(connect=10.0, read=30.0)
TRANSFER = urllib3.Timeout(connect=10.0, read=120.0)
"""Seconds of each read or write of a long transfer, not of all of them."""

_CHUNK = 2**18
_MAX_RETRY_AFTER = 3_600.0
_CONTENT_TYPES = {"POST": "application/json", "PUT": "application/octet-stream"}
_PUBLIC = ("/worker/version", "/worker.pyz")

_ERRORS: Mapping[int, type[TuningError]] = {
    **dict.fromkeys((401, 403), NotPermitted),
    **dict.fromkeys((400, 413, 422), OutOfRange),
    426: SchemaMismatch,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerVersion:
    """What a server needs of a worker: `sha256` is the hash of its worker.pyz."""

    version: str
    protocol: int
    sha256: str

    def __str__(self) -> str:
        file = f"worker.pyz {self.sha256[:12]}"
        return printable(f"version {self.version} (protocol {self.protocol}, {file})", 200)


class RemoteStore:
    """The server at the URL `where`, a `WorkerStore` for the machine with this token.

    TLS certificates are compared with the system's authorities, or those of SSL_CERT_FILE. A
    redirect is not followed, because it would send the token elsewhere. `on_chunk` is called
    after each part of a download.

    Every call raises DatabaseUnreachable if there is no response that this version understands,
    NotPermitted for a token that is unknown or revoked, and SchemaMismatch if the server speaks
    another version of the protocol.
    """

    def __init__(self, url: str, token: str) -> None:
        self.where, self.token = url, token
        self.on_chunk: Callable[[], None] = lambda: None
        self._public = {"User-Agent": f"spsa-worker/{__version__}"}
        secret = {"Authorization": f"Bearer {token}", "X-Spsa-Protocol": str(PROTOCOL)}
        self._private = self._public | secret
        # Two connections: leases are renewed between the parts of a download. Without retries,
        # no redirect is followed.
        self._pool = urllib3.PoolManager(maxsize=2, retries=False)

    def close(self) -> None:
        self._pool.clear()

    def server_version(self) -> ServerVersion:
        """What the server needs of a worker, by a request whose form never changes."""
        return self._value(ServerVersion, "GET", "/worker/version")

    def worker_file(self) -> bytes:
        """The server's worker.pyz, not yet verified; empty if it has none."""
        return self._file("/worker.pyz", lambda: None) or b""

    def ask(self, request: Request[Reply]) -> Reply:
        body = json.dumps(to_json(request)).encode()
        return self._value(request.reply_type(), "POST", f"/worker/{request.path}", body, "reply")

    def file(self, sha256: str) -> bytes | None:
        """The bytes; None also if no live claim of this machine names them any more."""
        return self._file(f"/worker/files/{sha256}", self.on_chunk)

    def upload_build(self, held: HeldBuild, side: str, content: bytes) -> BuiltFile:
        path = f"/worker/builds/{held.build_id}/{held.claim_id}/{side}"
        built: BuiltFile = self._value(BuiltFile, "PUT", path, content, timeout=TRANSFER)
        if built.sha256 != hashlib.sha256(content).hexdigest():
            raise DatabaseUnreachable(f"an engine was damaged on its way to {self.where}")
        return built

    def _value(
        self, kind: Any, method: str, path: str, body: bytes = b"", field: str = "", **how: Any
    ) -> Any:
        """The value of this kind in a field of the response, or in the fields of all of it."""
        response, data = self._response(method, path, body, **how)
        if response.status != 200:
            raise self._refusal(response, data)[1]
        if (found := _parsed(data)) is None:
            raise self._not_understood(path)
        try:
            if field:
                return from_json(kind, found[field], field)
            known = {one.name: found[one.name] for one in fields(kind) if one.name in found}
            return from_json(kind, known, "response")
        except (TuningError, KeyError) as error:
            raise self._not_understood(path, str(error)) from error

    def _file(self, path: str, on_chunk: Callable[[], None]) -> bytes | None:
        """None if there is no such file, or this machine may not have it."""
        response, data = self._response("GET", path, timeout=TRANSFER, on_chunk=on_chunk)
        if response.status == 200:
            return data
        kind, error = self._refusal(response, data)
        if response.status == 404 or (response.status == 403 and kind != "revoked"):
            return None
        raise error

    def _response(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        timeout: urllib3.Timeout = USUAL,
        on_chunk: Callable[[], None] = lambda: None,
    ) -> tuple[urllib3.BaseHTTPResponse, bytes]:
        """The response and its content. No token is sent with what is public."""
        headers = self._public if path in _PUBLIC else self._private
        if method in _CONTENT_TYPES:
            headers = {**headers, "Content-Type": _CONTENT_TYPES[method]}
        data = bytearray()
        try:
            response = self._pool.request(
                *(method, self.where + path),
                body=body or None,
                headers=headers,
                timeout=timeout,
                preload_content=False,
            )
            with response:  # closed, and not used again, where it is not read to its end
                for chunk in response.stream(_CHUNK):
                    data += chunk
                    if len(data) > MAX_BYTES:
                        raise DatabaseUnreachable(f"{self.where} sends more than {MAX_BYTES} bytes")
                    on_chunk()
        except (HTTPError, OSError) as error:
            told = str(error).rpartition("): ")[2]  # without the class of the connection
            reason = f"{self.where} does not respond: {printable(told, 200)}"
            if isinstance(error, SSLError):
                reason = (
                    f"{self.where} has no certificate that this machine trusts: "
                    f"{printable(str(error), 200)}; SSL_CERT_FILE may name the authority's"
                )
            raise DatabaseUnreachable(reason) from None
        return response, bytes(data)

    def _refusal(self, response: urllib3.BaseHTTPResponse, data: bytes) -> tuple[str, TuningError]:
        """The kind of a response other than 200, and the error that it means."""
        found, status = _parsed(data) or {}, response.status
        reason, kind = found.get("error") or f"it responds {status}", str(found.get("kind"))
        text = printable(f"{self.where}: {reason}", FAILURE_LENGTH)
        if status == 409:
            return kind, CONFLICTS.get(kind, TuningError)(text)
        if status in _ERRORS:
            return kind, _ERRORS[status](text)
        wait = response.headers.get("Retry-After", "")
        seconds = min(float(wait), _MAX_RETRY_AFTER) if wait.isascii() and wait.isdigit() else None
        return kind, (TooManyRequests if status == 429 else DatabaseUnreachable)(text, seconds)

    def _not_understood(self, path: str, why: str = "") -> DatabaseUnreachable:
        return DatabaseUnreachable(
            f"{self.where} does not respond to {path} as `spsa-master serve` does"
            + (f": {printable(why, 300)}" if why else "")
        )


def _parsed(data: bytes) -> Mapping[str, Any] | None:
    """A JSON object; None if it is anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
