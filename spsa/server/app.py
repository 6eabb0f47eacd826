"""The web application: which address is answered by what, and how a failure is told."""

import errno
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from spsa.db import Store
from spsa.errors import (
    DatabaseUnreachable,
    IllegalTransition,
    NothingToDo,
    NotPermitted,
    TuningError,
)
from spsa.server.guard import Guard, Proxy
from spsa.server.pages import Pages
from spsa.server.people import Forms, People, TokenGuesses
from spsa.server.receiving import Refused, refused_by
from spsa.server.rendering import PLOTLY, REFRESH_SECONDS, compile_templates, refusal, send_plotly
from spsa.server.workers import Workers

THREADS = 6
"""Requests that read at a time: fewer than the connections a viewer may have."""

SHUTDOWN_SECONDS = 3
"""How long requests that are being answered have when the server ends."""

_STATIC: list[str | tuple[str, str]] = [("spsa.server", "static"), ("spsa.report", "assets")]

log = logging.getLogger(__name__)


def application(store: Store, people: People, proxy: Proxy | None = None) -> Starlette:
    """The server of a database for these people, whose requests `proxy` passes on, if any."""
    compile_templates()
    guesses = TokenGuesses()
    forms = Forms(store, people, guesses)
    return Starlette(
        routes=[
            *Workers(store, guesses).routes(),  # first, because they are asked for most often
            Route("/health", partial(_health, store)),
            *Pages(store).routes(),
            Route("/login", forms.login_page),
            Route("/login", forms.log_in, methods=["POST"]),
            Route("/run", forms.change_run, methods=["POST"]),
            Route(PLOTLY, send_plotly),
            Mount("/static", StaticFiles(packages=_STATIC)),
        ],
        middleware=[Middleware(Guard, people=people, guesses=guesses, proxy=proxy)],
        exception_handlers={
            TuningError: _failed,
            Refused: lambda request, error: (
                error.response
                if request.url.path.startswith("/worker/")
                else refusal(request.url.path, error.status, str(error), error.headers)
            ),
            HTTPException: lambda request, error: refusal(
                request.url.path, error.status_code, error.detail, error.headers
            ),
            Exception: _broken,
        },
        lifespan=_lifespan,
    )


def _health(store: Store, _request: Request) -> Response:
    try:
        store.check()
    except TuningError as error:
        log.warning("/health: %s", error)
        return JSONResponse({"status": "the database cannot be used"}, 503)
    return JSONResponse({"status": "ok"})


@asynccontextmanager
async def _lifespan(_app: Starlette) -> AsyncIterator[None]:
    to_thread.current_default_thread_limiter().total_tokens = THREADS
    yield


def _failed(request: Request, error: Exception) -> Response:
    """The answer to what the database does not have, refuses or does not do.

    A message of the database may name logins and addresses: the log gets it, the client does not.
    """
    path = request.url.path
    if path.startswith("/worker/"):
        return refused_by(path, error).response
    if isinstance(error, NothingToDo):
        return refusal(path, 404, str(error))
    if isinstance(error, IllegalTransition):
        return refusal(path, 409, str(error))
    log.warning("%s: %s", path, error)
    if isinstance(error, DatabaseUnreachable):
        again = {"Refresh": str(REFRESH_SECONDS)} if request.method == "GET" else None
        return refusal(path, 503, "the database does not answer; this page asks it again", again)
    if isinstance(error, NotPermitted):
        return refusal(path, 403, "the server's login of the database has no right to do this")
    return refusal(path, 500, "the database could not do this; the server's log says why")


def _broken(request: Request, error: Exception) -> Response:
    log.error("%s: a defect of this program: %r", request.url.path, error)
    return refusal(request.url.path, 500, "this page has a defect; the server's log names it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the server listens; with a certificate and its key, both in PEM files, by TLS."""

    host: str
    port: int
    certificate: Path | None = None
    private_key: Path | None = None
    proxy: Proxy | None = None


def listen(
    store: Store, endpoint: Endpoint, people: People, announce: Callable[[str], None]
) -> None:
    """Answer requests; `announce` is told the address, in which port 0 has become a real one.

    Raises:
        TuningError: the address cannot be listened on.
    """
    # the application tells of its own failures
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    host = endpoint.host
    with listening(host, endpoint.port) as listener:
        config = uvicorn.Config(
            application(store, people, endpoint.proxy),
            log_config=None,
            server_header=False,
            proxy_headers=False,  # Guard reads them, and only from the proxy
            lifespan="on",
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            ssl_certfile=endpoint.certificate,
            ssl_keyfile=endpoint.private_key,
            ssl_ciphers="DEFAULT",  # uvicorn's own choice leaves TLS 1.2 without its best ones
        )
        shown = f"[{host}]" if ":" in host else host
        # uvicorn hands a signal on when it has closed its connections; this one ends well
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        scheme = "http" if endpoint.certificate is None else "https"
        announce(f"{scheme}://{shown}:{listener.getsockname()[1]}/")
        uvicorn.Server(config).run(sockets=[listener])


def listening(host: str, port: int) -> socket.socket:
    """A socket for clients; what is sent to them leaves at once.

    asyncio asks for that only where a socket names its protocol. Without it the second part of a
    response, its body, would wait 40 ms for the client to acknowledge the first.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port)[0]
        listener = socket.create_server(address, family=family)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        return listener
    except OSError as error:
        other = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        found = f"{host}:{port}: {error.strerror or error}"
        raise TuningError(f"{found}; name another one with {other}") from None
