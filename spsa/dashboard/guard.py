"""Who may ask, and what a browser may do with the answers."""

import hmac
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import ip_address
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spsa.dashboard.rendering import render

COOKIE = "spsa_dashboard"
COOKIE_SECONDS = 30 * 86400
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_MAX_FORM = 4096
_OPEN = ("/login", "/static/")


@dataclass(frozen=True, slots=True)
class Token:
    """What has to be known to look; a cookie holds something made from it instead."""

    text: str

    @property
    def cookie(self) -> str:
        return hmac.new(self.text.encode(), b"cookie of the dashboard", sha256).hexdigest()

    def opens(self, request: Request) -> bool:
        kind, _, sent = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self.is_(sent.strip())
        return _same(request.cookies.get(COOKIE, ""), self.cookie)

    def is_(self, text: str) -> bool:
        return _same(text, self.text)


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def is_loopback(host: str) -> bool:
    """Whether a name or an address can only be this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """Lets requests through that have the token, and adds the security headers to every answer.

    Without a token only requests to a loopback name are answered: a page of another site that has
    its own name resolved to 127.0.0.1 would read the dashboard otherwise.
    """

    def __init__(self, app: ASGIApp, token: Token | None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(Request(scope))
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        if self._token is None:
            if is_loopback(request.url.hostname or ""):
                return None
            return JSONResponse({"error": "this dashboard answers only under a loopback name"}, 421)
        path = request.url.path
        if path.startswith(_OPEN) or self._token.opens(request):
            return None
        if path.startswith(("/api/", "/metrics")):
            return JSONResponse({"error": "a token is needed"}, 401, {"WWW-Authenticate": "Bearer"})
        return HTMLResponse(render("login", wrong=False), 401)


async def login(request: Request) -> Response:
    """Take the token from a form and answer with a cookie."""
    token: Token | None = request.app.state.token
    if token is None:
        return RedirectResponse("/", 303)
    if not token.is_(await _sent_token(request)):
        return HTMLResponse(render("login", wrong=True), 401)
    answer = RedirectResponse("/", 303)
    answer.set_cookie(
        COOKIE,
        token.cookie,
        max_age=COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


async def _sent_token(request: Request) -> str:
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > _MAX_FORM:
                return ""
    except ClientDisconnect:
        return ""
    return parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
