"""The URL of a database, taken apart by ourselves and by nobody else.

A driver's parser guesses what a password with an @ or a # in it may mean, connects somewhere else,
and quotes what it did not understand. Here a URL is either what it says or refused, and a refusal
never quotes any of it: wherever a URL is wrong, its password may be.
"""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from urllib.parse import unquote_to_bytes

from spsa.errors import Fault, InvalidInput

POSTGRESQL = ("postgres", "postgresql", "postgresql+psycopg2")
SQLITE = ("sqlite", "sqlite+pysqlite")
LONGEST = 4096
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")

_LIBPQ = """application_name channel_binding client_encoding connect_timeout gssdelegation
    gssencmode gsslib hostaddr keepalives keepalives_count keepalives_idle keepalives_interval
    krbsrvname load_balance_hosts max_protocol_version min_protocol_version options passfile
    requirepeer require_auth ssl_max_protocol_version ssl_min_protocol_version sslcert sslcertmode
    sslcompression sslcrl sslcrldir sslkey sslmode sslnegotiation sslpassword sslrootcert sslsni
    target_session_attrs tcp_user_timeout"""
LIBPQ_OPTIONS = frozenset(_LIBPQ.split())
"""What may stand behind the ? of a URL, besides the parts of the URL itself."""

_PARTS = ("user", "password", "host", "port", "dbname")
_REMEDY = "use sqlite:///path/to/spsa.db or postgresql://user:password@host:5432/database"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PLACE = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>.*))?", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_IPV6 = re.compile(r"[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?")
_OTHERS = ("mysql", "mariadb", "oracle", "mssql", "mongodb", "redis", "http", "https", "file")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server listens: a name, an address, or the folder of a socket; None is the usual."""

    host: str | None
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if self.host and ":" in self.host else self.host or ""
        return host if self.port is None else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServerUrl:
    """A PostgreSQL database: on the first of `places` that answers."""

    user: str | None
    password: str | None
    places: tuple[Place, ...]
    database: str | None
    options: tuple[tuple[str, str], ...]

    def option(self, name: str) -> str | None:
        return dict(self.options).get(name)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FileUrl:
    """An SQLite file, or a `file:` name that only SQLite takes apart."""

    path: str
    options: tuple[tuple[str, str], ...]


def parsed(text: str) -> ServerUrl | FileUrl:
    """The parts of a URL.

    Raises:
        InvalidInput: it is no URL of a database this project works with.
    """
    if len(text) > LONGEST:
        raise refused(f"is longer than {LONGEST} characters")
    if any(not c.isprintable() or c.isspace() for c in text) and not _is_file(text):
        raise refused("has a space or an unprintable character", "write a space as %20")
    found = _SCHEME.match(text)
    if found is None:
        raise refused("is not a URL")
    scheme, rest = found[1].lower(), text[found.end() :]
    if scheme in SQLITE:
        return _file(rest)
    if scheme in POSTGRESQL:
        return _server(rest)
    raise _another(scheme)


def _is_file(text: str) -> bool:
    return text.startswith(tuple(f"{scheme}://" for scheme in SQLITE)) and text.isprintable()


def _another(scheme: str) -> InvalidInput:
    """Quotes a scheme only if it is one of somebody's: a password may have taken its place."""
    kind, _, driver = scheme.partition("+")
    if kind in ("postgresql", "postgres") and driver:
        return refused("names a driver that is not used here", "write postgresql:// alone")
    if kind in _OTHERS:
        return refused(f"names the database {kind!r}, which is not known here")
    close = get_close_matches(kind, ("postgresql", "sqlite"), 1)
    return refused(
        "names a database that is not known here",
        f"is {close[0]}:// meant? {_REMEDY}" if close else _REMEDY,
    )


def _file(rest: str) -> FileUrl:
    path, mark, query = rest.partition("?")
    if not path.startswith("/"):
        raise refused("names no SQLite file")
    options = _options(query) if mark else ()
    names = {name for name, _ in options}
    if path[1:] in ("", ":memory:"):
        raise refused("is an SQLite database without a file, which no second process can reach")
    if "uri" not in names and names - {"timeout"}:
        raise refused("has options that an SQLite file does not take")
    return FileUrl(path=path[1:], options=options)


def _server(rest: str) -> ServerUrl:
    if "#" in rest:
        raise refused("has a #", "write it as %23")
    body, mark, query = rest.partition("?")
    if "@" in query:
        raise refused("has an @ behind its ?", "inside a password write ? as %3F and @ as %40")
    authority, slash, path = body.partition("/")
    if "@" in path or "/" in path:
        raise refused(
            "has an @ or a / behind its first /", "inside a password write / as %2F and @ as %40"
        )
    who, at, where = authority.rpartition("@")
    options = dict(_options(query)) if mark else {}
    user, password = _credentials(who) if at else (None, None)
    given = {name: options.pop(name) for name in _PARTS if name in options}
    _check(options)
    return ServerUrl(
        user=_once("user", user, given),
        password=_once("password", password, given),
        places=_all_places(where, given),
        database=_once("dbname", _decoded(path) if slash and path else None, given),
        options=tuple(options.items()),
    )


def _once(name: str, written: str | None, given: dict[str, str]) -> str | None:
    if written is not None and given.get(name, written) != written:
        raise refused(f"names its {name} twice")
    return given.get(name, written)


def _credentials(text: str) -> tuple[str | None, str | None]:
    if set(text) & set("@[]"):
        raise refused(
            "has an @ or a bracket in its user or password", "write @ as %40, [ as %5B, ] as %5D"
        )
    user, colon, password = text.partition(":")
    return _decoded(user) or None, _decoded(password) if colon else None


def _all_places(where: str, given: dict[str, str]) -> tuple[Place, ...]:
    if not where:
        hosts: list[str | None] = [host or None for host in given.get("host", "").split(",")]
        ports = given.get("port", "").split(",") if "port" in given else [""]
        if len(ports) not in (1, len(hosts)):
            raise refused("has not as many ports as hosts")
        ports = ports * (len(hosts) // len(ports))
        return tuple(Place(h, _port(p)) for h, p in zip(hosts, ports, strict=True))
    if given.keys() & {"host", "port"}:
        raise refused("names its host or port twice")
    return tuple(_place(part) for part in where.split(","))


def _place(text: str) -> Place:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise refused(
            "has no host where one should be",
            "write host:port, and an IPv6 address in brackets, as in [::1]:5432",
        )
    return Place(_host(found["host"]), _port(found["port"] or ""))


def _host(text: str) -> str | None:
    if text.startswith("["):
        inner = _decoded(text[1:-1])
        if not _IPV6.fullmatch(inner) or ":" not in inner:
            raise refused("has brackets around what is no IPv6 address")
        return inner
    host = _decoded(text)
    if not host or host.startswith("/") or _NAME.fullmatch(host):
        return host or None
    raise refused("has no host name where one should be", f"escape its password; {_REMEDY}")


def _port(text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        raise refused("has no port number where one should be", "use 1 to 65535, usually 5432")
    return int(text)


def _options(query: str) -> tuple[tuple[str, str], ...]:
    """What stands behind the ?; which names there are is another question."""
    found: dict[str, str] = {}
    for pair in query.split("&") if query else ():
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise refused("has something behind its ? that is no name=value")
        if name in found:
            raise refused("names an option twice")
        found[_decoded(name)] = _decoded(value)
    return tuple(found.items())


def _check(options: dict[str, str]) -> None:
    for name in options:
        if name not in LIBPQ_OPTIONS:
            close = get_close_matches(name, (*sorted(LIBPQ_OPTIONS), *_PARTS), 1)
            hint = f"is {close[0]} meant?" if close else "inside a password write ? as %3F"
            raise refused("has an option that PostgreSQL's library does not take", hint)
    if options.get("sslmode", "prefer") not in SSL_MODES:
        raise refused("has an sslmode that is none", f"use one of {', '.join(SSL_MODES)}")


def _decoded(text: str) -> str:
    if _BROKEN_ESCAPE.search(text):
        raise refused("has a % that is no escape", "inside a password write it as %25")
    try:
        decoded = unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        raise refused("has an escape that is not UTF-8") from None
    if "\0" in decoded:
        raise refused("has a NUL in it")
    return decoded


def refused(found: str, remedy: str = _REMEDY) -> InvalidInput:
    """Why a URL is not used, in words that hold nothing of it."""
    return InvalidInput(
        [Fault(file="DATABASE_URL", line=None, name="database.url", found=found, remedy=remedy)]
    )
