"""The secret by which the database knows this machine again, whatever worker of it asks."""

import logging
import os
from pathlib import Path
from secrets import token_hex

from spsa.text import NAME_LENGTH, printable

log = logging.getLogger(__name__)

_FILE = "machine-secret"


def machine_secret(folder: Path) -> str:
    """The secret that is kept in this folder, made at the first call; 64 hexadecimal digits.

    Where the folder cannot be used, a secret that lasts as long as this process: the database then
    takes it for a machine of its own.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _kept(folder / _FILE)
    except OSError as error:
        place = printable(str(folder), NAME_LENGTH)
        log.warning("the secret of this machine cannot be kept in %s: %s", place, error.strerror)
        return token_hex(32)


def _kept(file: Path) -> str:
    """Written whole under another name first, so that two processes never see half of it."""
    if not file.exists():
        fresh = file.with_name(f"{_FILE}.{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(token_hex(32))
        try:
            os.link(fresh, file)
        except FileExistsError:
            pass  # another process of this machine was faster
        finally:
            fresh.unlink()
    return file.read_text(encoding="ascii").strip()
