"""The secret by which the database recognises this machine, whichever worker of it connects."""

import logging
import os
from pathlib import Path
from secrets import token_hex

from spsa.text import NAME_LENGTH, printable

log = logging.getLogger(__name__)

_FILE = "machine-secret"


def machine_secret(folder: Path) -> str:
    """The secret in this folder, made by the first call; 64 hexadecimal digits.

    Where the folder cannot be used, the secret lasts as long as this process, and the database
    takes the process for another machine.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _stored(folder / _FILE)
    except OSError as error:
        place = printable(str(folder), NAME_LENGTH)
        log.warning("cannot keep this machine's secret in %s: %s", place, error.strerror)
        return token_hex(32)


def _stored(file: Path) -> str:
    """Write it under another name and link it, so that no process reads half of it."""
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
