"""Reads the URL of a database: where it is, and how much a server has to prove before it is used.

SQLAlchemy takes an SQLite URL apart, and PostgreSQL's own library (libpq) a server's. libpq guesses
what an unescaped @, / or # in a password may mean, and would then connect somewhere else and show a
part of the password as a host. Such a URL is refused, in one fixed sentence; a message about a URL
never quotes any part of it.

libpq by itself accepts a server without TLS, and any certificate, in silence. This program asks a
server on another machine for a certificate that names it and that a trusted authority has signed,
unless the URL or the environment says otherwise.
"""

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from spsa.errors import Fault, InvalidInput
from spsa.files import MAX_TEXT, content

LONGEST = 4096
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")

_REMEDY = (
    "use sqlite:///path/to/spsa.db or postgresql://user:password@host:5432/database, "
    "and inside a password write @ as %40, / as %2F, # as %23, ? as %3F and % as %25"
)
_SQLITE = re.compile(r"sqlite(\+pysqlite)?://", re.IGNORECASE)
_POSTGRESQL = re.compile(r"postgres(ql)?(\+psycopg2)?://", re.IGNORECASE)
_HOST = re.compile(r"(\w([\w.-]*[\w.])?|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(%[\w.-]+)?|/.*)?", re.ASCII)
_SECONDS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


def parsed(text: str) -> sa.URL:
    """The URL with its driver named; several hosts and their ports are in its query, as lists.

    Raises:
        InvalidInput: it is no URL of PostgreSQL or of an SQLite file.
    """
    if len(text) <= LONGEST and text.isprintable():
        if _SQLITE.match(text):
            return _file_url(text)
        if (found := _POSTGRESQL.match(text)) and not set(text) & {" ", "#"}:
            return _server_url(text[found.end() :])
    raise refused()


def displayed(url: sa.URL) -> str:
    """The URL as it may be shown: without password and query, but with all its hosts."""
    shown = url.set(query={}).render_as_string(hide_password=True)
    if "host" not in url.query:
        return shown
    hosts, ports = (str(url.query[name]).split(",") for name in ("host", "port"))
    places = ",".join(f"{host}:{port}".rstrip(":") for host, port in zip(hosts, ports, strict=True))
    before, at, database = shown.rpartition("@")
    return f"{before}{at}{places}{database}" if at else shown.replace("://", f"://{places}", 1)


def refused(found: str = "is not the URL of a PostgreSQL database or an SQLite file") -> Exception:
    """The error for a URL; `found` holds nothing of it."""
    return InvalidInput(
        [Fault(file="DATABASE_URL", line=None, name="database.url", found=found, remedy=_REMEDY)]
    )


def _file_url(text: str) -> sa.URL:
    try:
        url = sa.make_url(text)
    except (ArgumentError, ValueError):
        raise refused() from None
    if url.host is not None or url.username is not None or url.database in (None, "", ":memory:"):
        raise refused("names no SQLite file that a second process can open")
    if "uri" not in url.query and url.query.keys() - {"timeout"}:
        raise refused("has options that an SQLite file does not take")
    if not _SECONDS.fullmatch(str(url.query.get("timeout", "0"))):
        raise refused("has a timeout that is not a number of seconds")
    return url.set(drivername="sqlite")


def _server_url(text: str) -> sa.URL:
    parts = _libpq_parts(text)
    hosts = parts.pop("host", "").split(",")
    ports = parts.pop("port", "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    _check_places(hosts, ports)
    _check_parts(parts)
    url = sa.URL.create(
        "postgresql+psycopg2",
        username=parts.pop("user", None),
        password=parts.pop("password", None),
        database=parts.pop("dbname", None),
        query=parts,
    )
    if len(hosts) == 1:
        return url.set(host=hosts[0] or None, port=int(ports[0]) if ports[0] else None)
    several = {"host": ",".join(hosts), "port": ",".join(ports)}
    return url.update_query_dict({"target_session_attrs": "read-write", **parts, **several})


def _libpq_parts(text: str) -> dict[str, str]:
    """The parts by libpq's names for them, each of which may be given once."""
    from psycopg2 import Error, extensions  # late: only a server needs the driver

    body, _, query = text.partition("?")
    try:
        parts, options = (
            extensions.parse_dsn(f"postgresql://{part}") for part in (body, f"?{query}")
        )
    except (Error, ValueError):
        raise refused() from None
    if parts.keys() & options.keys() or len(options) != len(query.split("&")) * bool(query):
        raise refused("names an option twice")
    if "@" in query:  # of a password with an unescaped ?
        raise refused()
    return {**parts, **options}


def _check_places(hosts: list[str], ports: list[str]) -> None:
    if not all(_HOST.fullmatch(host) for host in hosts) or not all(map(_is_port, ports)):
        raise refused()
    if len(ports) != len(hosts):
        raise refused("has not as many ports as hosts")


def _is_port(text: str) -> bool:
    return not text or (re.fullmatch(r"[0-9]{1,5}", text) is not None and 0 < int(text) < 65536)


def _check_parts(parts: Mapping[str, str]) -> None:
    if set(parts.get("dbname", "")) & set("@/") or "service" in parts:
        raise refused()
    if parts.get("sslmode", "prefer") not in SSL_MODES:
        raise refused(f"has an sslmode that is not one of {', '.join(SSL_MODES)}")


DEFAULT_URL = "sqlite:///spsa.db"
"""The database where config.toml names none: a file beside it."""

_SQLITE_PATH = re.compile(r"sqlite(?:\+pysqlite)?:///(?P<path>[^?]*)(?P<query>\?.*)?", re.DOTALL)
_SERVER_REST = re.compile(r"postgres(?:ql)?(?:\+psycopg2)?://(?P<rest>.+)", re.DOTALL)


def with_absolute_path(url: str, folder: Path) -> str:
    """The URL with its driver named; a relative SQLite path is relative to `folder`."""
    if found := _SERVER_REST.fullmatch(url):
        return f"postgresql+psycopg2://{found['rest']}"
    found = _SQLITE_PATH.fullmatch(url)
    if found is None or found["path"].startswith("file:"):
        return url
    return f"sqlite:///{(folder / found['path']).resolve().as_posix()}{found['query'] or ''}"


def configured_url(folder: Path, written: str | None) -> str:
    """The database of a config.toml in `folder`; `written` is the url of its [database], if any."""
    return with_absolute_path(DEFAULT_URL if written is None else written.strip(), folder)


def url_in(path: Path) -> str:
    """The URL in a file of one line, the form in which services receive secrets.

    Raises:
        InvalidInput: the file cannot be read or has not one line.
    """
    try:
        text = content(path, MAX_TEXT).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise _unusable(path, f"cannot be read: {reason}") from None
    if not text or "\n" in text:
        raise _unusable(path, "does not have exactly one line")
    return text


def _unusable(path: Path, found: str) -> InvalidInput:
    remedy = "write the database's URL into it, and nothing else"
    return InvalidInput(
        [Fault(file=str(path), line=None, name="database.url", found=found, remedy=remedy)]
    )


def command_line_warning(text: str) -> str | None:
    """The warning about a URL on a command line; None where it holds no password."""
    if parsed(text).password is None:
        return None
    return (
        "every user of this machine can read a command line, and the password in it: use "
        "DATABASE_URL, --database-url-file or ~/.pgpass"
    )


STRICT = "verify-full"
_WEAK = ("disable", "allow", "prefer", "require")
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # macOS, OpenBSD
)
_OWN_ROOT = ".postgresql/root.crt"
_REMEDIES = {
    "server does not support SSL": "it has no TLS: give it a certificate (docs/security.md), or "
    "write ?sslmode=disable to send everything unencrypted",
    "does not match host name": "use the host name that the certificate contains, or issue a "
    "certificate for this name",
    "certificate verify failed": "no trusted authority signed its certificate: name the file of "
    "the authority as ?sslrootcert=/path/ca.crt",
    "root certificate file": "name the file of its certificate's authority as "
    "?sslrootcert=/path/ca.crt",
}


def with_verified_tls(url: sa.URL, environ: Mapping[str, str] = os.environ) -> sa.URL:
    """The same URL, with the server's certificate verified unless the user chose otherwise."""
    if _chosen_mode(url, environ) is not None or is_local(url, environ):
        return url
    added = {"sslmode": STRICT}
    if "sslrootcert" not in url.query and (roots := root_certificates(environ)) is not None:
        added["sslrootcert"] = roots
    return url.update_query_dict(added)


def tls_warnings(url: sa.URL, environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """What the user should know about the connection; no warning holds a secret."""
    mode = _chosen_mode(url, environ)
    if mode in _WEAK and not is_local(url, environ):
        risk = (
            "the server's identity is not checked"
            if mode == "require"
            else "others may read and change what is sent"
        )
        yield f"the connection to the database has sslmode={mode}: {risk}; the default is {STRICT}"


def is_local(url: sa.URL, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the database is on this machine, so that nothing crosses a network."""
    if url.get_backend_name() == "sqlite":
        return True
    unnamed = environ.get("PGHOST") or ("elsewhere" if environ.get("PGSERVICE") else "")
    hosts = str(url.query.get("host", url.host or "")).split(",")
    hosts = [host or unnamed for host in hosts]
    hosts.append(str(url.query.get("hostaddr") or environ.get("PGHOSTADDR") or ""))
    return all(_is_local_host(host) for name in hosts for host in name.split(","))


def root_certificates(environ: Mapping[str, str] = os.environ) -> str | None:
    """The file of the authorities that this system trusts; None where libpq finds its own.

    libpq reads ~/.postgresql/root.crt by itself. The file is named because the library inside
    psycopg2-binary looks for it where that library was compiled.
    """
    if environ.get("PGSSLROOTCERT") or (Path.home() / _OWN_ROOT).exists():
        return None
    usual = (environ.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile, *_BUNDLES)
    return next((path for path in usual if path and Path(path).is_file()), None)


def tls_remedy(message: str) -> str:
    """What to do about a TLS error of PostgreSQL's library; empty for any other message."""
    return next((f"; {text}" for cause, text in _REMEDIES.items() if cause in message), "")


def _chosen_mode(url: sa.URL, environ: Mapping[str, str]) -> str | None:
    return str(url.query.get("sslmode", "")) or environ.get("PGSSLMODE") or None


def _is_local_host(host: str) -> bool:
    if not host or host.startswith(("/", "@")) or host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
