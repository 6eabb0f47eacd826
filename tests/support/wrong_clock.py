"""Another clock for processes of the tests, by libfaketime: a day off, and stepped while they run.

Only the time of day is moved: a real step leaves the monotonic clock alone as well.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class WrongClock:
    """The time of day of what is started `inside`: an offset, `+1d` or `-1d`, that may change."""

    def __init__(self, file: Path, offset: str = "+0") -> None:
        self._library = _libfaketime()
        self._file = file
        self.step(offset)

    def step(self, offset: str) -> None:
        """Within a second it is so much later, or earlier, than it is."""
        draft = self._file.with_suffix(".new")
        draft.write_text(offset)
        draft.replace(self._file)

    @contextmanager
    def inside(self, zone: str) -> Iterator[None]:
        """What is started here has this clock for good, and this time zone."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TZ", zone)
            patch.setenv("LD_PRELOAD", self._library)
            patch.setenv("FAKETIME_TIMESTAMP_FILE", str(self._file))
            patch.setenv("FAKETIME_CACHE_DURATION", "1")
            patch.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            yield


def _libfaketime() -> str:
    """The library of the Debian package `faketime`."""
    found = [str(path) for path in Path("/usr/lib").glob("*/faketime/libfaketime.so.1")]
    if not found:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no libfaketime")
    return found[0]
