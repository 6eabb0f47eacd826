"""Whether the way to a database is encrypted, and the other end the right one.

PostgreSQL's library by itself takes a server without TLS, and any certificate, in silence. Here a
server that is not on this machine has to show a certificate with its name that is vouched for,
unless somebody has said otherwise in so many words.
"""

import os
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

from spsa.db.database_url import FileUrl, ServerUrl

STRICT = "verify-full"
_WEAK = ("disable", "allow", "prefer", "require")
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # macOS, OpenBSD
)
_OWN_ROOT = ".postgresql/root.crt"
_CAUSES = {
    "server does not support SSL": "it has no TLS: give it a certificate (docs/security.md), or "
    "write ?sslmode=disable to have everything read on its way",
    "does not match host name": "write the name that is in the certificate, or have one made for "
    "this name",
    "certificate verify failed": "nobody known here vouches for its certificate: name the file of "
    "its authority as ?sslrootcert=/path/ca.crt",
    "root certificate file": "name the file of its certificate's authority as "
    "?sslrootcert=/path/ca.crt",
}


def secured(url: ServerUrl, environ: Mapping[str, str] = os.environ) -> ServerUrl:
    """The same URL with the server's certificate verified, unless its writer chose otherwise."""
    if _chosen(url, environ) is not None or is_near(url, environ):
        return url
    wanted = {"sslmode": STRICT}
    if url.option("sslrootcert") is None and (roots := authorities(environ)) is not None:
        wanted["sslrootcert"] = roots
    return replace(url, options=(*url.options, *wanted.items()))


def cautions(url: FileUrl | ServerUrl, environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """What its owner should know of an address, nothing of it secret; of a file, nothing."""
    if isinstance(url, FileUrl):
        return
    mode = _chosen(url, environ)
    if mode in _WEAK and not is_near(url, environ):
        read = "nobody checks who answers" if mode == "require" else "others may read and change it"
        yield f"the way to the database has sslmode={mode}: {read}; without it, {STRICT} is used"


def is_near(url: ServerUrl, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether nothing of what is said to this server leaves the machine."""
    unnamed = environ.get("PGHOST") or ("elsewhere" if environ.get("PGSERVICE") else "")
    hosts = [place.host or unnamed for place in url.places]
    hosts += (url.option("hostaddr") or environ.get("PGHOSTADDR") or "").split(",")
    return all(_is_near(host) for name in hosts for host in name.split(","))


def authorities(environ: Mapping[str, str] = os.environ) -> str | None:
    """The file of those who vouch for servers; None where the library's own default is to be used.

    That is ~/.postgresql/root.crt where there is one, else those this system trusts. They are named
    by their file: the library in psycopg2-binary looks for them where it was compiled.
    """
    if environ.get("PGSSLROOTCERT") or (Path.home() / _OWN_ROOT).exists():
        return None
    usual = (environ.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile, *_BUNDLES)
    return next((path for path in usual if path and Path(path).is_file()), None)


def advice(words: str) -> str:
    """What to do about a refusal in the words of PostgreSQL's library; empty if it is another."""
    return next((f"; {advice}" for cause, advice in _CAUSES.items() if cause in words), "")


def _chosen(url: ServerUrl, environ: Mapping[str, str]) -> str | None:
    return url.option("sslmode") or environ.get("PGSSLMODE") or None


def _is_near(host: str) -> bool:
    if not host or host.startswith(("/", "@")) or host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
