"""What `ps` and /proc show of a run while it builds and plays: no password.

Every process of the machine is looked at again and again, as root where this is root. The two
programs themselves were given the database's URL in their environment; nothing that they start was.
"""

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from console import PATIENCE, Running
from engines.faulty import wait_until
from tuner import Tuner

from spsa.db.url import parse_url

pytestmark = [
    pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo"),
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

CRATE = Path(__file__).parents[1] / "fixtures" / "crate"
PASSWORD, OTHER = "correct-horse-battery", "staple-of-the-driver"
CONFIG = """\
[time_control]
kind = "nodes"
low = 150
[games]
games_per_iteration = 8
batch_size = 2
[build]
source_path = "engine"
constants_file = "src/constants.rs"
"""
PARAMS = """\
[margin]
value = 10
min = 1
max = 100
step = 5
constant = "src/constants.rs::MARGIN"
"""


@dataclass
class Listing:
    """The programs that were seen, and what of the secrets was seen where."""

    secrets: list[bytes]
    seen: set[str] = field(default_factory=set)
    found: set[str] = field(default_factory=set)

    def look(self) -> None:
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                self._look_at(process)

    def saw_all(self, builders: set[str]) -> bool:
        """These, and an engine of a worker's cache, whose file has the name of its hash."""
        seen = set(self.seen)
        return builders <= seen and any(len(name) == 64 for name in seen)

    def _look_at(self, process: Path) -> None:
        words = (process / "cmdline").read_bytes()
        self.seen.add(Path(words.split(b"\0")[0].decode(errors="replace")).name)
        shown = words.replace(b"\0", b" ").decode(errors="replace")
        environment = (process / "environ").read_bytes()
        ours = b"from spsa.cli import main" in words or b"\0-m\0worker\0" in words
        for secret in self.secrets:
            if secret in words or (secret in environment and not ours):
                self.found.add(shown)


@contextmanager
def looking(secrets: list[bytes]) -> Iterator[Listing]:
    """Look at all processes while something is done."""
    listing, done = Listing(secrets), threading.Event()

    def look() -> None:
        while not done.is_set():
            listing.look()
            time.sleep(0.02)

    looker = threading.Thread(target=look)
    looker.start()
    try:
        yield listing
    finally:
        done.set()
        looker.join()


@pytest.mark.slow
def test_no_secret_is_listed_or_logged(postgresql_url, tmp_path, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", OTHER)
    url = parse_url(postgresql_url).set(password=PASSWORD).render_as_string(hide_password=False)
    shutil.copytree(CRATE, tmp_path / "engine")
    tuner = Tuner(tmp_path, url, CONFIG, PARAMS)
    with looking([PASSWORD.encode(), OTHER.encode()]) as listing:
        tuner.master()
        tuner.wait_for_work()
        tuner.worker("-v")
        wait_until(lambda: listing.saw_all({"cargo", "rustc"}), PATIENCE)
    assert listing.found == set()
    assert PASSWORD not in tuner.words() and OTHER not in tuner.words()


@pytest.mark.parametrize("shown", ["argument", "environment"])
def test_the_look_finds_what_is_there(shown):
    arguments = [PASSWORD] if shown == "argument" else []
    given = {"SECRET": PASSWORD} if shown == "environment" else {}
    Running(["sh", "-c", "sleep 60; true", "sh", *arguments], env={"PATH": os.defpath, **given})
    listing = Listing([PASSWORD.encode()])
    wait_until(lambda: listing.look() or bool(listing.found))
