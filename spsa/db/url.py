"""The URL of a database: what it means, how it is shown, and TLS for a server elsewhere."""

import os
import ssl
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from spsa.errors import InvalidInput
from spsa.files import MAX_TEXT, content
from spsa.protocol import is_loopback

DEFAULT_URL = "sqlite:///spsa.db"
"""The database where config.toml names none: a file beside it."""

TYPED_PASSWORD = (
    "every user of this machine can read a command line, and the password in it: use "
    "DATABASE_URL, DATABASE_URL_FILE or ~/.pgpass"
)
"""The warning for a URL with a password on a command line."""

TLS_REMEDY = (
    "; the server has to prove who it is: name the authority of its certificate as "
    "?sslrootcert=/path/ca.crt, or write ?sslmode=disable to send everything unencrypted"
)

_NAME = "database.url"
_LONGEST = 4096
_FILE_REMEDY = "use sqlite:///path/to/spsa.db"
_REMEDY = (
    f"{_FILE_REMEDY} or postgresql://user:password@host:5432/database, "
    "and inside a password write @ as %40, / as %2F, # as %23, ? as %3F and % as %25"
)
_SERVER = ("postgresql", "postgres", "postgresql+psycopg2")
_FILE = ("sqlite", "sqlite+pysqlite")
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
)


def parsed(text: str, place: object = "DATABASE_URL") -> sa.URL:
    """The URL with its driver named.

    InvalidInput names the place where it is written, and never quotes it, because it may hold a
    password.
    """
    try:
        url = sa.make_url(text)
    except (ArgumentError, ValueError):
        raise refused(place) from None
    scheme = url.drivername.lower()
    is_whole = len(text) <= _LONGEST and text.isprintable()
    if scheme in _SERVER and is_whole and _is_server(text, url):
        return url.set(drivername="postgresql+psycopg2")
    if scheme not in _FILE or not is_whole:
        raise refused(place)
    if url.host or url.username or url.query or url.database in (None, "", ":memory:"):
        raise refused(place, "names no SQLite file that a second process can open", of_file=True)
    return url.set(drivername="sqlite")


def _is_server(text: str, url: sa.URL) -> bool:
    """Whether no part of a password can stand elsewhere, where it would be shown."""
    is_clear = text.count("@") <= 1 and "@" not in (url.database or "") and " " not in text
    return is_clear and (url.port is None or 0 < url.port < 65536)


def refused(
    place: object, found: str = "is not the URL of a database", *, of_file: bool = False
) -> Exception:
    """The error for a URL; `found` holds nothing of it."""
    return InvalidInput.of(place, _NAME, found, _FILE_REMEDY if of_file else _REMEDY)


def displayed(url: sa.URL) -> str:
    """The URL as it may be shown: without driver, password and query."""
    return url.set(drivername=url.get_backend_name(), query={}).render_as_string()


def is_file(url: sa.URL) -> bool:
    return url.get_backend_name() == "sqlite"


def parse_url(text: str) -> sa.URL:
    """The same URL, with the certificate of a server elsewhere verified.

    libpq by itself accepts a server without TLS, and any certificate, in silence. What the URL or
    the environment says goes before that.
    """
    url = parsed(text)
    if is_file(url) or "sslmode" in url.query or "PGSSLMODE" in os.environ or _is_local(url):
        return url
    return url.set(query={"sslmode": "verify-full", **_authorities(), **url.query})


def _is_local(url: sa.URL) -> bool:
    """Whether the server is on this machine, so that nothing crosses a network."""
    host = str(url.query.get("host") or url.host or os.environ.get("PGHOST") or "localhost")
    return host.startswith("/") or is_loopback(host)


def _authorities() -> dict[str, str]:
    """The file of the authorities that this system trusts, unless the user has one for libpq.

    The library inside psycopg2-binary looks for it only where that library was compiled.
    """
    if os.environ.get("PGSSLROOTCERT") or (Path.home() / ".postgresql/root.crt").exists():
        return {}
    usual = (os.environ.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile, *_BUNDLES)
    found = next((path for path in usual if path and Path(path).is_file()), None)
    return {} if found is None else {"sslrootcert": found}


def with_absolute_path(url: str, folder: Path) -> str:
    """The same URL; a relative SQLite path is relative to `folder`."""
    scheme, _, path = url.partition(":///")
    if scheme.lower() not in _FILE or path in ("", ":memory:"):
        return url
    return f"sqlite:///{(folder / path).resolve().as_posix()}"


def configured_url(folder: Path, written: str | None) -> str:
    """The database of a config.toml in `folder`; `written` is the url of its [database], if any."""
    return with_absolute_path(DEFAULT_URL if written is None else written.strip(), folder)


def url_in(path: Path) -> str:
    """The URL in a file of one line, the form in which services receive secrets."""
    try:
        text = content(path, MAX_TEXT).decode("utf-8").strip()
        found = None if text and "\n" not in text else "does not have exactly one line"
    except (OSError, UnicodeDecodeError) as error:
        found = f"cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}"
    if found is not None:
        remedy = "write the database's URL into it, and nothing else"
        raise InvalidInput.of(path, _NAME, found, remedy)
    parsed(text, path)
    return text


def has_password(option: str) -> bool:
    """Whether the URL of a command line has one, which other users can read there."""
    return parsed(option, "--database-url").password is not None
