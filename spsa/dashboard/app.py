"""The web application: which address is answered by what, and how a failure is told."""

import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from spsa.dashboard.api import Api
from spsa.dashboard.guard import Guard, Token, login
from spsa.dashboard.pages import Pages
from spsa.dashboard.reading import Reader
from spsa.dashboard.rendering import REFRESH_SECONDS, compile_templates, render
from spsa.db.store import Store
from spsa.errors import DatabaseUnreachable, NothingToDo, TuningError

THREADS = 6
"""Requests that read at a time: fewer than the connections a viewer may have."""

log = logging.getLogger(__name__)


def application(store: Store, token: Token | None) -> Starlette:
    """The dashboard of a database, which it only reads."""
    compile_templates()
    reader = Reader(store)
    app = Starlette(
        routes=_routes(Pages(reader), Api(reader)),
        middleware=[Middleware(Guard, token=token)],
        exception_handlers={
            TuningError: _failed,
            HTTPException: _refused,
            Exception: _broken,
        },
        lifespan=_lifespan,
    )
    app.state.token = token
    return app


def _routes(pages: Pages, api: Api) -> list[Route | Mount]:
    return [
        Route("/", pages.runs),
        Route("/run", pages.run),
        Route("/parameters", pages.parameters),
        Route("/parameter", pages.parameter),
        Route("/workers", pages.workers),
        Route("/iterations", pages.iterations),
        Route("/iteration", pages.iteration),
        Route("/batch", pages.batch),
        Route("/events", pages.events),
        Route("/login", login, methods=["POST"]),
        Route("/api/runs", api.runs),
        Route("/api/run", api.run),
        Route("/api/history", api.history),
        Route("/api/parameter", api.parameter),
        Route("/api/workers", api.workers),
        Route("/api/iterations", api.iterations),
        Route("/api/iteration", api.iteration),
        Route("/api/batch", api.batch),
        Route("/api/events", api.events),
        Route("/metrics", api.metrics),
        Mount("/static", StaticFiles(packages=[("spsa.dashboard", "static")])),
    ]


@asynccontextmanager
async def _lifespan(_app: Starlette) -> AsyncIterator[None]:
    to_thread.current_default_thread_limiter().total_tokens = THREADS
    yield


def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, NothingToDo):
        return _told(request, 404, str(error))
    log.warning("%s: %s", request.url.path, error)
    if isinstance(error, DatabaseUnreachable):
        return _told(request, 503, "the database does not answer; this page asks it again")
    return _told(request, 500, "this cannot be read from the database; the server's log says why")


def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _told(request, status, str(getattr(error, "detail", error)))


def _broken(request: Request, error: Exception) -> Response:
    log.error("%s: a defect of this program: %r", request.url.path, error)
    return _told(request, 500, "this page has a defect; the server's log names it")


def _told(request: Request, status: int, sentence: str) -> Response:
    if request.url.path.startswith(("/api/", "/metrics")):
        return JSONResponse({"error": sentence}, status)
    again = {"Refresh": str(REFRESH_SECONDS)} if status == 503 else None
    return HTMLResponse(render("error", status=status, sentence=sentence), status, again)


def serve(
    store: Store, host: str, port: int, token: Token | None, announce: Callable[[str], None]
) -> None:
    """Answer requests; `announce` is told the address, in which port 0 has become a real one.

    Raises:
        OSError: the address cannot be listened on.
    """
    logging.getLogger("uvicorn.error").setLevel(
        logging.CRITICAL
    )  # the application tells of its own
    with _listening(host, port) as listener:
        config = uvicorn.Config(
            application(store, token),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            timeout_graceful_shutdown=3,
        )
        shown = f"[{host}]" if ":" in host else host
        # uvicorn hands a signal on when it has closed its connections; this one ends well
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        announce(f"http://{shown}:{listener.getsockname()[1]}/")
        uvicorn.Server(config).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), f"{host}:{port}") from None
