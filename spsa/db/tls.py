"""TLS of a PostgreSQL server: what a URL asks for, warnings, and what to do about an error.

libpq by itself accepts a server without TLS, and any certificate, in silence. This program asks a
server on another machine for a certificate that names it and that a trusted authority has signed,
unless the URL or the environment says otherwise.
"""

import os
import ssl
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path

import sqlalchemy as sa

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


def warnings(url: sa.URL, environ: Mapping[str, str] = os.environ) -> Iterator[str]:
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


def remedy(message: str) -> str:
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
