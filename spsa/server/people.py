"""People: their tokens, the session that a token opens, guesses, and the forms that they send."""

import hmac
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Network, ip_address
from math import ceil
from threading import Lock
from time import monotonic, time
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from spsa.db import Store
from spsa.server.pages import needed, own_page
from spsa.server.receiving import received_whole
from spsa.server.rendering import refusal, render
from spsa.server.views import link
from spsa.text import NAME_LENGTH, is_printable

COOKIE = "spsa_session"
MAX_WRONG = 10
WRONG_SECONDS = 60.0
MAX_ADDRESSES = 10_000
_IPV6_PREFIX = 64
"""Bits of an IPv6 address that a provider gives to one customer, who may use all of the rest."""


class Role(StrEnum):
    """An operator may do what a viewer may, and change the status of runs."""

    VIEWER = "viewer"
    OPERATOR = "operator"


SESSION_SECONDS = {Role.VIEWER: 30 * 86400, Role.OPERATOR: 43_200}


@dataclass(frozen=True, slots=True)
class Token:
    """What a person has to know for a role; it is compared in constant time and never shown."""

    role: Role
    text: str = field(repr=False)

    def is_(self, text: str) -> bool:
        return _is_same(text, self.text)

    def new_cookie(self) -> str:
        """What the browser keeps instead: when the session ends, and the MAC of that."""
        end = str(int(time()) + SESSION_SECONDS[self.role])
        return f"{end}.{self._mac(end)}"

    def has_made(self, cookie: str) -> bool:
        """Whether a cookie is of a session of this token that has not ended."""
        end, _, mac = cookie.partition(".")
        return _is_same(mac, self._mac(end)) and int(end) >= time()

    def _mac(self, end: str) -> str:
        return hmac.new(self.text.encode(), f"cookie {end}".encode(), sha256).hexdigest()


def _is_same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


@dataclass(frozen=True, slots=True)
class People:
    """The tokens that people may have, none or one of each role."""

    viewer: Token | None = None
    operator: Token | None = None

    @property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(token for token in (self.operator, self.viewer) if token is not None)

    def role(self, request: Request) -> Role | None:
        """The role that a request's token or cookie gives."""
        if (sent := bearer(request)) is not None:
            token = self.find(sent)
            return None if token is None else token.role
        cookie = request.cookies.get(COOKIE, "")
        return next((token.role for token in self.tokens if token.has_made(cookie)), None)

    def find(self, text: str) -> Token | None:
        return next((token for token in self.tokens if token.is_(text)), None)


def bearer(request: Request) -> str | None:
    """The token of `Authorization: Bearer TOKEN`; None without one."""
    kind, _, sent = request.headers.get("authorization", "").partition(" ")
    return sent.strip() if kind.lower() == "bearer" else None


def client_address(request: Request) -> str:
    """The address of the client, as the proxy says it where there is one."""
    return request.client.host if request.client else ""


class TokenGuesses:
    """Counts the wrong tokens of every client address, and says when one has to wait.

    It keeps at most `MAX_ADDRESSES` addresses and forgets those that were wrong longest ago first.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def seconds_to_wait(self, address: str) -> int:
        """Whole seconds until this address may send a token again; 0 means now."""
        with self._lock:
            times = self._wrong.get(_client(address))
            if times is None or len(times) < MAX_WRONG:
                return 0
            return max(0, ceil(times[0] + WRONG_SECONDS - self._clock()))

    def add_wrong(self, address: str) -> None:
        """Count a wrong token."""
        client = _client(address)
        with self._lock:
            self._wrong.setdefault(client, deque(maxlen=MAX_WRONG)).append(self._clock())
            self._wrong.move_to_end(client)
            if len(self._wrong) > MAX_ADDRESSES:
                self._wrong.popitem(last=False)

    def refusal(self, request: Request) -> Response | None:
        """The answer to a client that has sent too many wrong tokens."""
        if not (seconds := self.seconds_to_wait(client_address(request))):
            return None
        again = {"Retry-After": str(seconds)}
        return refusal(request.url.path, 429, too_many_guesses(seconds), again)


def too_many_guesses(seconds: int) -> str:
    return f"too many wrong tokens came from this address; wait {seconds} seconds"


def _client(address: str) -> str:
    """What counts as one client: an IPv4 address, or the network of an IPv6 address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    mapped = parsed if isinstance(parsed, IPv4Address) else parsed.ipv4_mapped
    return str(mapped or IPv6Network((int(parsed), _IPV6_PREFIX), strict=False))


_MAX_BYTES = 4096
ACTOR = "operator"


class Forms:
    """Takes the forms of the pages; Guard has made sure that they come from a page."""

    def __init__(self, store: Store, people: People, guesses: TokenGuesses) -> None:
        self._changes: Mapping[str, Callable[..., object]] = {
            "pause": store.pause,
            "resume": store.resume,
            "stop": store.stop,
        }
        self._people = people
        self._guesses = guesses

    def login_page(self, request: Request) -> Response:
        to = own_page(request.query_params.get("to", ""))
        return HTMLResponse(render("login", wrong=False, to=to))

    async def log_in(self, request: Request) -> Response:
        """Take a token and answer with a cookie, and with the page that was asked for before."""
        fields = await _fields(request)
        sent, to = fields.get("token", "").strip(), own_page(fields.get("to", ""))
        if (refused := self._guesses.refusal(request)) is not None:
            return refused
        token = self._people.find(sent)
        if token is None:
            self._guesses.add_wrong(client_address(request))
            return HTMLResponse(render("login", wrong=True, to=to), 401)
        answer = RedirectResponse(to, 303)
        answer.set_cookie(
            COOKIE,
            token.new_cookie(),
            max_age=SESSION_SECONDS[token.role],
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    async def change_run(self, request: Request) -> Response:
        """Pause, resume or stop a run; what cannot be undone is asked for once more."""
        name, fields = needed(request, "run"), await _fields(request)
        if request.state.role is not Role.OPERATOR:
            said = "only an operator changes a run: log in with the operator's token"
            raise HTTPException(403, said)
        change, reason = fields.get("change", ""), fields.get("reason", "").strip()
        if change not in self._changes:
            raise HTTPException(400, "change is not pause, resume or stop")
        if reason and not is_printable(reason, NAME_LENGTH):
            raise HTTPException(400, f"reason is not one line of at most {NAME_LENGTH} characters")
        if change == "stop" and "confirmed" not in fields:
            return HTMLResponse(render("stop", name=name, reason=reason))
        why = () if change == "resume" else (reason or f"by the {ACTOR}",)
        await run_in_threadpool(self._changes[change], name, ACTOR, *why)
        return RedirectResponse(link("/run", run=name), 303)


async def _fields(request: Request) -> dict[str, str]:
    """The fields of a form, the first of each name."""
    body = (await received_whole(request, _MAX_BYTES)).decode("utf-8", "replace")
    return {name: values[0] for name, values in parse_qs(body).items()}
