"""Who may ask what, and what a browser may do with the answers."""

import re
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spsa.protocol import is_loopback
from spsa.server.pages import asked_for
from spsa.server.people import COOKIE, People, TokenGuesses, bearer, client_address
from spsa.server.rendering import refusal, render

HEADERS = {
    # Plotly writes style elements, and makes pictures from data: and blob: addresses
    "content-security-policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
_NO_COOKIE = (b"set-cookie", f"{COOKIE}=; Max-Age=0; Path=/".encode())
_HEALTH = "/health"
_WORKERS = ("/worker/", "/worker.pyz")
"""Requests of workers, which have tokens of their own."""
_LOGIN = ("/login", "/static/")
_READS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Proxy:
    """The addresses of the proxy in front of this server, whose two headers are believed.

    They are the last address of X-Forwarded-For, which is the one that the proxy itself has added,
    and X-Forwarded-Proto.
    """

    networks: tuple[IPv4Network | IPv6Network, ...]

    @classmethod
    def at(cls, *texts: str) -> "Proxy":
        """A proxy at any of these addresses or networks; ValueError for other texts."""
        return cls(tuple(ip_network(text) for text in texts))

    def passes_on(self, scope: Scope) -> bool:
        """Put the client's address and scheme into `scope`; False: the proxy has not sent it."""
        peer = ip_address(scope["client"][0])
        if not any(peer in network for network in self.networks):
            return False
        headers = Headers(scope=scope)
        client = ",".join(headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
        with suppress(ValueError):
            scope["client"] = (str(ip_address(client)), 0)
        if headers.get("x-forwarded-proto", "").strip() == "https":
            scope["scheme"] = "https"
        return True


class Guard:
    """Lets requests through whose sender may see the answer, and adds security headers to it.

    `request.state.role` of what is let through is the sender's Role, or None, and
    `request.state.can_log_in` says whether there is an operator's token to log in with.
    Without a viewer's token only requests to a loopback name are answered: a page of another site
    that has its own name resolved to 127.0.0.1 would read this server's otherwise.
    """

    def __init__(
        self, app: ASGIApp, people: People, guesses: TokenGuesses, proxy: Proxy | None
    ) -> None:
        self._app = app
        self._people = people
        self._guesses = guesses
        self._proxy = proxy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        request.state.role, request.state.wrong = None, False
        request.state.can_log_in = self._people.operator is not None
        refused = self._refused(request)
        has_ended = request.state.wrong and COOKIE in request.cookies

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_RAW_HEADERS]
                if has_ended:
                    message["headers"].append(_NO_COOKIE)
            await send(message)

        await (refused or self._app)(scope, receive, send_with_headers)

    def _refused(self, request: Request) -> Response | None:
        path = request.scope["path"]
        is_passed_on = self._proxy is None or self._proxy.passes_on(request.scope)
        if path == _HEALTH:
            return None
        if not is_passed_on:
            return refusal(path, 403, "this server answers only what its proxy passes on")
        if path.startswith(_WORKERS):
            return None
        if self._people.viewer is None and not is_loopback(_named(request)):
            return refusal(path, 421, "this server answers only under a loopback name")
        if request.method not in _READS and not _is_of_own_page(request):
            return refusal(path, 403, _FOREIGN_FORM)
        return None if path.startswith(_LOGIN) else self._refused_role(request)

    def _refused_role(self, request: Request) -> Response | None:
        has_sent = bearer(request) is not None or COOKIE in request.cookies
        if self._people.tokens and has_sent:
            if (refused := self._guesses.refusal(request)) is not None:
                return refused
            request.state.role = self._people.role(request)
            if request.state.role is None:
                request.state.wrong = True
                self._guesses.add_wrong(client_address(request))
        if self._people.viewer is None or request.state.role is not None:
            return None
        return _login_needed(request)


def _named(request: Request) -> str:
    """The name under which a client calls this server.

    `request.url` has the server's own address instead where it cannot read the header.
    """
    found = re.fullmatch(r"\[([^]]*)](?::\d*)?|([^:]*)(?::\d*)?", request.headers.get("host", ""))
    return (found[1] or found[2] or "") if found else ""


_FOREIGN_FORM = (
    "this was not sent by a page of this server; a proxy in front has to pass on Host and to set "
    "X-Forwarded-Proto"
)


def _is_of_own_page(request: Request) -> bool:
    own = f"{request.url.scheme}://{request.headers.get('host', '')}"
    site = request.headers.get("sec-fetch-site", "same-origin")
    return request.headers.get("origin") == own and site == "same-origin"


def _login_needed(request: Request) -> Response:
    answer = refusal(
        request.scope["path"], 401, "a token is needed", {"WWW-Authenticate": "Bearer"}
    )
    is_page = isinstance(answer, HTMLResponse)
    if not is_page:
        return answer
    return HTMLResponse(render("login", wrong=False, to=asked_for(request)), 401)
