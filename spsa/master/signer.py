"""Who signs what workers are to execute."""

from spsa.config import Config
from spsa.security.keys import SigningKey
from spsa.security.signing import Sign


def signer(config: Config) -> Sign | None:
    """The pen of the key that [trust] names; None where nothing is to be signed.

    Raises:
        InvalidInput: its file is not there, or others may read it, or it holds no such key.
    """
    return None if config.signing_key is None else SigningKey.read(config.signing_key).sign
