"""The master's ed25519 key pair: generate, store in files, sign and check.

The private key is a PEM file (PKCS 8) that only its owner may read. The public key is 32 bytes in
base64, short enough for a command line. The package cryptography is optional.
"""

import os
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from spsa.errors import Fault, InvalidInput, NotSigned, TuningError
from spsa.security.files import MAX_TEXT, content
from spsa.security.signing import SignedOrder

if TYPE_CHECKING:
    from spsa.security.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_PRIVATE = 0o600
_OTHERS = 0o077
_PUBLIC_BYTES = 32
_PUBLIC_SUFFIX = ".pub"


@dataclass(frozen=True, slots=True, repr=False)
class SigningKey:
    """The master's private key."""

    _key: "Ed25519PrivateKey"

    @classmethod
    def new(cls) -> Self:
        return cls(_library().Ed25519PrivateKey.generate())

    @classmethod
    def read(cls, path: Path) -> Self:
        """The key in a file.

        Raises:
            InvalidInput: the file is missing, is readable by others, or holds no such key.
        """
        ed25519 = _library()
        try:
            key = ed25519.load_pem_private_key(_private_bytes(path), password=None)
        except (ValueError, TypeError):
            raise _refused(path, "holds no unencrypted private key in PEM") from None
        if not isinstance(key, ed25519.Ed25519PrivateKey):
            raise _refused(path, "holds a key of another kind than ed25519")
        return cls(key)

    def write(self, path: Path) -> None:
        """Write the key to a new file that only its owner may read, and the public key beside it.

        Raises:
            InvalidInput: the file exists; it is never overwritten.
        """
        for file in (path, public_file(path)):
            if file.exists():
                raise _refused(file, "exists already", "choose another name")
        ed25519 = _library()
        pem = self._key.private_bytes(
            ed25519.Encoding.PEM, ed25519.PrivateFormat.PKCS8, ed25519.NoEncryption()
        )
        _create(path, pem, _PRIVATE)
        _create(public_file(path), f"{self.public}\n".encode(), 0o644)

    @property
    def public(self) -> "TrustKey":
        return TrustKey(self._key.public_key())

    def sign(self, order: SignedOrder) -> str:
        """The signature of an order, in base64."""
        return b64encode(self._key.sign(order.to_bytes())).decode("ascii")


@dataclass(frozen=True, slots=True, repr=False)
class TrustKey:
    """A master's public key, with which a worker checks orders. Its text is base64."""

    _key: "Ed25519PublicKey"

    @classmethod
    def of(cls, text: str) -> Self:
        """The key in `text`: base64, or the name of a file that holds it.

        Raises:
            InvalidInput: it is neither.
        """
        ed25519 = _library()
        data = _public_bytes(text)
        if data is None:
            path = Path(text)
            data = _public_bytes(_first_line(path))
            if data is None:
                raise _refused(path, "holds no public key", "name what `key new` wrote as .pub")
        return cls(ed25519.Ed25519PublicKey.from_public_bytes(data))

    def __str__(self) -> str:
        return b64encode(self._key.public_bytes_raw()).decode("ascii")

    def check(self, order: SignedOrder, signature: str | None) -> None:
        """Check that this key signed exactly this order.

        Raises:
            NotSigned: it is not signed, or signed by another key, or was changed since.
        """
        place = f"iteration {order.iteration} of run {order.run}"
        if signature is None:
            raise NotSigned(f"{place} is not signed, so it is not played")
        ed25519 = _library()
        try:
            self._key.verify(b64decode(signature, validate=True), order.to_bytes())
        except (ed25519.InvalidSignature, NoBase64, ValueError):
            raise NotSigned(
                f"{place} is not what the owner of the trusted key {self} signed, "
                "so it is not played"
            ) from None


def public_file(path: Path) -> Path:
    """The file of the public key that belongs to a key file."""
    return path.with_name(path.name + _PUBLIC_SUFFIX)


def _library() -> Any:
    # late: the package is optional, and takes 30 ms to load
    try:
        from spsa.security import ed25519
    except ImportError:
        raise TuningError(
            "signatures need the package cryptography: pip install 'spsa-tuner[trust]'"
        ) from None
    return ed25519


def _private_bytes(path: Path) -> bytes:
    try:
        found, mode = content(path, MAX_TEXT), path.stat().st_mode
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}") from None
    if mode & _OTHERS:
        raise _refused(path, "is readable by others than its owner", f"chmod 600 {path}")
    return found


def _create(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _first_line(path: Path) -> str:
    try:
        return content(path, MAX_TEXT).decode("ascii").strip().partition("\n")[0]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        remedy = "give the key itself in base64, or the file that `spsa-master key new` wrote"
        raise _refused(path, f"is no public key, and cannot be read: {reason}", remedy) from None


def _public_bytes(text: str) -> bytes | None:
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        return None
    return data if len(data) == _PUBLIC_BYTES else None


def _refused(path: Path, found: str, remedy: str = "`spsa-master key new FILE` makes one") -> Any:
    return InvalidInput([Fault(file=str(path), line=None, name="key", found=found, remedy=remedy)])
