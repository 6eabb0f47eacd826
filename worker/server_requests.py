"""HTTP requests to `spsa-master serve`: the token, TLS, limits, and what its errors mean.

Nothing here repeats a request: `DatabaseClient` does, with the same ids.
"""

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError, SSLError

from spsa import __version__
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
from spsa.text import FAILURE_LENGTH, printable

USUAL = urllib3.Timeout(connect=10.0, read=30.0)
TRANSFER = urllib3.Timeout(connect=10.0, read=120.0)
"""Seconds of each read or write of a long transfer, not of all of them."""

_MAX_JSON = 2**24
_CHUNK = 2**18
_MAX_RETRY_AFTER = 3_600.0

_CONFLICTS: Mapping[str, type[TuningError]] = {
    "lease_lost": LeaseLost,
    "conflict": ReportConflict,
    "not_registered": IllegalTransition,
    "name_taken": NameTaken,
}
_ERRORS: Mapping[int, type[TuningError]] = {
    **dict.fromkeys((401, 403), NotPermitted),
    **dict.fromkeys((400, 413, 422), OutOfRange),
    426: SchemaMismatch,
}


class ServerRequests:
    """Requests to the server at the URL `where`, with a token or without one.

    TLS certificates are compared with the system's authorities, or those of SSL_CERT_FILE. A
    redirect is not followed, because it would send the token elsewhere.

    Every request raises DatabaseUnreachable if there is no response that this version understands,
    NotPermitted for a token that is unknown or revoked, and SchemaMismatch if the server speaks
    another version of the protocol.
    """

    def __init__(self, url: str, token: str) -> None:
        self.where = url
        self._public = {"User-Agent": f"spsa-worker/{__version__}"}
        self._private = {
            **self._public,
            "Authorization": f"Bearer {token}",
            "X-Spsa-Protocol": str(PROTOCOL),
        }
        tls: dict[str, Any] = {}
        if url.startswith("https"):
            tls["ssl_context"] = ssl.create_default_context()
        self._pool = urllib3.PoolManager(maxsize=2, retries=False, **tls)

    def close(self) -> None:
        self._pool.clear()

    def json(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = "application/json",
        timeout: urllib3.Timeout = USUAL,
        private: bool = True,
    ) -> Mapping[str, Any]:
        """The JSON object of the response; the token is sent with what is `private`."""
        headers = dict(self._private if private else self._public)
        if body is not None:
            headers["Content-Type"] = content_type
        with self._response(method, path, headers, body, timeout) as response:
            if response.status != 200:
                raise self._refusal(response)[1]
            found = _parsed(self._read(response, _MAX_JSON))
        if found is None:
            raise self.not_understood(path)
        return found

    def file(
        self, path: str, most: int, meanwhile: Callable[[], None], *, private: bool = True
    ) -> bytes | None:
        """At most so many bytes; None if there is no such file, or this machine may not have it.

        `meanwhile` is called between two parts.
        """
        headers = self._private if private else self._public
        with self._response("GET", path, headers, None, TRANSFER) as response:
            if response.status == 200:
                return self._read(response, most, meanwhile)
            kind, error = self._refusal(response)
            if response.status == 404 or (response.status == 403 and kind != "revoked"):
                return None
            raise error

    @contextmanager
    def _response(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: urllib3.Timeout,
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """The response, of which nothing but the headers has been read."""
        url = self.where + path
        options: dict[str, Any] = {"redirect": False, "preload_content": False}
        try:
            response = self._pool.request(
                method, url, body=body, headers=headers, timeout=timeout, **options
            )
            try:
                yield response
            finally:
                # What was not read is not worth reading: the connection is closed, not used again.
                response.close() if response.length_remaining else response.release_conn()
        except SSLError as error:
            raise DatabaseUnreachable(
                f"{self.where} has no certificate that this machine trusts: "
                f"{printable(str(error), 200)}; SSL_CERT_FILE may name the authority's"
            ) from None
        except (HTTPError, OSError) as error:
            reason = printable(str(error), 200)
            raise DatabaseUnreachable(f"{self.where} does not respond: {reason}") from None

    def _read(
        self,
        response: urllib3.BaseHTTPResponse,
        most: int,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> bytes:
        found = bytearray()
        for chunk in response.stream(_CHUNK):
            found += chunk
            if len(found) > most:
                raise DatabaseUnreachable(f"{self.where} sends more than {most} bytes")
            meanwhile()
        return bytes(found)

    def _refusal(self, response: urllib3.BaseHTTPResponse) -> tuple[str, TuningError]:
        """The kind of a response other than 200, and the error that it means."""
        found, status = _parsed(response.read(_CHUNK)) or {}, response.status
        reason = printable(str(found.get("error") or f"it responds {status}"), 1_000)
        text, kind = printable(f"{self.where}: {reason}", FAILURE_LENGTH), str(found.get("kind"))
        if status == 409:
            return kind, _CONFLICTS.get(kind, TuningError)(text)
        if status in _ERRORS:
            return kind, _ERRORS[status](text)
        wait = response.headers.get("Retry-After", "")
        seconds = min(float(wait), _MAX_RETRY_AFTER) if wait.isascii() and wait.isdigit() else None
        return kind, (TooManyRequests if status == 429 else DatabaseUnreachable)(text, seconds)

    def not_understood(self, path: str, why: str = "") -> DatabaseUnreachable:
        """The error for a response of another form than the contract's."""
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
