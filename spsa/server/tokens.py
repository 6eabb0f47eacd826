"""Tokens of people: which role one has, the session that it opens, and how guessing is slowed."""

import hmac
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Network, ip_address
from math import ceil
from secrets import token_hex
from threading import Lock
from time import monotonic, time

from starlette.requests import Request

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
class Session:
    """Who sent a request. `form_token` is None unless a cookie said it."""

    role: Role
    form_token: str | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """What a person has to know for a role; it is compared in constant time and never shown."""

    role: Role
    text: str

    def is_(self, text: str) -> bool:
        return is_same(text, self.text)

    def new_cookie(self) -> str:
        """What the browser keeps instead: when the session ends, its number, and their MAC."""
        session = f"{int(time()) + SESSION_SECONDS[self.role]}.{token_hex(8)}"
        return f"{session}.{self._mac('cookie', session)}"

    def session_of(self, cookie: str) -> Session | None:
        """The session of a cookie that this token has made and that has not ended."""
        session, _, mac = cookie.rpartition(".")
        if (
            not is_same(mac, self._mac("cookie", session))
            or int(session.partition(".")[0]) < time()
        ):
            return None
        return Session(self.role, self._mac("form", session))

    def _mac(self, purpose: str, session: str) -> str:
        return hmac.new(self.text.encode(), f"{purpose} {session}".encode(), sha256).hexdigest()

    def __repr__(self) -> str:
        return f"Token({self.role})"


def is_same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


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


def _client(address: str) -> str:
    """What counts as one client: an IPv4 address, or the network of an IPv6 address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    mapped = parsed if isinstance(parsed, IPv4Address) else parsed.ipv4_mapped
    return str(mapped or IPv6Network((int(parsed), _IPV6_PREFIX), strict=False))


@dataclass(frozen=True, slots=True)
class People:
    """The tokens that people may have, none or one of each role."""

    viewer: Token | None = None
    operator: Token | None = None

    @property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(token for token in (self.operator, self.viewer) if token is not None)

    def session(self, request: Request) -> Session | None:
        """The session that a request's token or cookie opens."""
        if (sent := bearer(request)) is not None:
            token = self.find(sent)
            return None if token is None else Session(token.role)
        cookie = request.cookies.get(COOKIE, "")
        return next(filter(None, (token.session_of(cookie) for token in self.tokens)), None)

    def find(self, text: str) -> Token | None:
        return next((token for token in self.tokens if token.is_(text)), None)


def bearer(request: Request) -> str | None:
    """The token of `Authorization: Bearer TOKEN`; None without one."""
    kind, _, sent = request.headers.get("authorization", "").partition(" ")
    return sent.strip() if kind.lower() == "bearer" else None
