"""A server of workers without a database: it hands out claims that a test made, and keeps reports.

The requests are those of `spsa-master serve`. What it responds may be replaced, and it may be away.
"""

import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from spsa.core.game_settings import Book, GameSettings, TimeControl, TimeKind
from spsa.core.json_values import to_json
from spsa.lifecycle import Purpose
from spsa.protocol import PROTOCOL, Claim, Engine

TOKEN = "machine-token-1234"
NODES = TimeControl(kind=TimeKind.NODES, low=77, high=77)

PART = 2**18
"""Bytes that a response is sent in."""

Response = tuple[int, Mapping[str, str], bytes]


def refusal(status: int, error: str = "no", kind: str | None = None, **headers: str) -> Response:
    """A response other than 200; `Retry_After="1"` is a header."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, named, json.dumps({"error": error, "field": None, "kind": kind}).encode()


@dataclass
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class WorkerServer:
    """What a test tells the server, and what the server has heard."""

    url: str = ""
    pyz: bytes = b""
    version: dict[str, Any] = field(default_factory=dict)
    claims: deque[Claim] = field(default_factory=deque)
    work: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    replaced: dict[str, Callable[[Request], Response | None]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    is_away: bool = False
    pause: float = 0.0  # seconds after each part of a long response
    set_aside: str | None = None

    def offer(self, pyz: bytes, version: str = "0.1.0", protocol: int = PROTOCOL) -> None:
        """Offer this worker.pyz."""
        self.pyz = pyz
        sha256 = hashlib.sha256(pyz).hexdigest()
        self.version = {"version": version, "protocol": protocol, "sha256": sha256}

    def asked(self, path: str) -> list[Request]:
        """The requests for a path so far."""
        return [request for request in self.requests if request.path == path]

    def reports(self) -> list[Any]:
        return [request.json for request in self.asked("/worker/report")]

    def respond(self, request: Request) -> Response:
        self.requests.append(request)
        replaced = self.replaced.get(request.path, lambda _: None)
        if (response := replaced(request)) is not None:
            return response
        if request.path == "/worker.pyz":
            return 200, {}, self.pyz
        if request.path == "/worker/version":
            return 200, {}, json.dumps(self.version).encode()
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return refusal(401, "this token is unknown")
        if request.path.startswith("/worker/files/"):
            data = self.files.get(request.path.rpartition("/")[2])
            return refusal(404) if data is None else (200, {}, data)
        return 200, {}, json.dumps({"reply": self._reply(request)}).encode()

    def _reply(self, request: Request) -> Any:
        name = request.path.removeprefix("/worker/")
        if name == "claim" and self.claims:
            return {**to_json(self.claims.popleft()), "claim_id": request.json["claim_id"]}
        if name == "renew":
            return request.json["claim_ids"]
        worker = {"id": 1, "machine": "machine"}
        same = {"register": worker, "touch": self.set_aside, "report": "accepted"}
        return (same | {"work": self.work}).get(name)


@contextmanager
def worker_server(ssl_context: Any = None) -> Iterator[WorkerServer]:
    """A server on a free port of this machine until the block ends."""
    state = WorkerServer()
    state.offer(b"not packed")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if state.is_away:
                self.close_connection = True
                return
            request = Request(self.command, self.path, dict(self.headers), body)
            status, headers, content = state.respond(request)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            for start in range(0, len(content), PART):
                self.wfile.write(content[start : start + PART])
                time.sleep(state.pause if len(content) > PART else 0.0)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # a worker that is killed, or does not trust the certificate, hangs up

    server = Server(("127.0.0.1", 0), Handler)
    scheme = "http"
    if ssl_context is not None:
        server.socket = ssl_context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    state.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def claim_of(
    plus: Path,
    minus: Path,
    server: WorkerServer | None = None,
    *,
    number: int = 1,
    pairs: int = 2,
    **settings: Any,
) -> Claim:
    """A batch between two engines; with a server they are there, and not at their paths."""
    sides = []
    for path in (plus, minus):
        data = path.read_bytes()
        sha256 = hashlib.sha256(data).hexdigest()
        if server is not None:
            server.files[sha256] = data
        place = str(path) if server is None else f"/nowhere/{path.name}"
        sides.append(Engine(sha256=sha256, path=place))
    settings.setdefault("time_control", NODES)
    settings.setdefault("book", Book())
    return Claim(
        claim_id="replaced",
        worker_id=1,
        batch_id=number,
        run_id=1,
        run_name="first",
        run_seed=7,
        iteration_id=1,
        iteration_number=1,
        purpose=Purpose.TUNE,
        seq=number,
        attempt=1,
        first_pair=0,
        pairs=pairs,
        seed=number,
        plus=sides[0],
        minus=sides[1],
        game_settings=GameSettings(**settings),
        lease_seconds=60.0,
    )
