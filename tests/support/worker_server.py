"""The real server of workers, behind a layer that notes requests and may respond by itself."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from builders import Stage
from served import serving
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spsa.lifecycle import MachineRole
from spsa.protocol import PROTOCOL

MACHINE = "far"


def refusal(status: int, error: str = "no", kind: str | None = None, **headers: str) -> Response:
    """A response other than 200; `Retry_After="1"` is a header."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return JSONResponse({"error": error, "field": None, "kind": kind}, status, named)


@dataclass
class Request:
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class WorkerServer:
    """What a test tells the server, and what the server has heard; `token` is a machine's."""

    staged: Stage
    token: str
    url: str = ""
    app: ASGIApp | None = None
    replaced: dict[str, Callable[[Request], Response | None]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    version: dict[str, Any] = field(default_factory=dict)
    is_away: bool = False
    pause: float = 0.0  # seconds after each part of a file

    def offer(self, pyz: bytes, version: str = "0.1.0", protocol: int = PROTOCOL) -> None:
        """Offer this worker.pyz, and not that of the tree."""
        sha256 = hashlib.sha256(pyz).hexdigest()
        self.version = {"version": version, "protocol": protocol, "sha256": sha256}
        self.replaced["/worker.pyz"] = lambda _: Response(pyz)
        self.replaced["/worker/version"] = lambda _: JSONResponse(self.version)

    def asked(self, path: str) -> list[Request]:
        """The requests for a path so far."""
        return [request for request in self.requests if request.path == path]

    def reports(self) -> list[Any]:
        return [request.json for request in self.asked("/worker/report")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.app is not None
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif self.is_away:  # a response that never ends
            await send({"type": "http.response.start", "status": 200, "headers": []})
        else:
            await self._respond(self.app, scope, receive, send)

    async def _respond(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        while message.get("more_body"):
            more = await receive()
            message = {**more, "body": message["body"] + more["body"]}
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        request = Request(scope["path"], headers, message["body"])
        self.requests.append(request)
        response = self.replaced.get(request.path, lambda _: None)(request)

        first = [message]

        async def received() -> Message:
            return first.pop() if first else await receive()

        async def sent(part: Message) -> None:
            await send(part)
            await asyncio.sleep(self.pause if request.path.startswith("/worker/files/") else 0.0)

        await (response or app)(scope, received, sent)


@contextmanager
def worker_server(staged: Stage, **options: Any) -> Iterator[WorkerServer]:
    """A server on a free port of this machine until the block ends."""
    state = WorkerServer(staged, staged.store.invite_machine(MACHINE, MachineRole.WORKER, "me"))

    def behind(app: ASGIApp) -> ASGIApp:
        state.app = app
        return state

    with serving(staged.store, around=behind, **options) as state.url:
        yield state
