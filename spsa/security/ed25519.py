"""What `keys` uses of the package cryptography, which is optional and takes 30 ms to import."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

__all__ = [
    "Ed25519PrivateKey",
    "Ed25519PublicKey",
    "Encoding",
    "InvalidSignature",
    "NoEncryption",
    "PrivateFormat",
    "load_pem_private_key",
]
