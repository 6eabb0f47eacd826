"""Engines that workers build: ordered by a master, leased to one machine, published once."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace

import pytest
from builders import LEASE, build_result, built
from stories import Story
from transcripts import headings

from spsa.protocol import HeldBuild, RegisteredWorker

WORDS = ("linux", "x86-64")
ARCHIVE = b"an archive"
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()
PLUS, MINUS = b"plus", b"minus"
KEY = "k" * 64


class Orders(Story):
    """One order for `WORDS`, and the builds that workers have leased, by their numbers."""

    def order(self) -> None:
        for _ in "12":
            self.store.keep_files({SHA256: ARCHIVE})
        self.store.order_build(KEY, (*WORDS, "builds"), SHA256, {"binary": "tern"}, max_attempts=2)

    def build(self, machine: str, again: int | None = None, lease: float = LEASE) -> str:
        number = again or next(self._asked)
        unknown = RegisteredWorker(id=99, machine="one")
        worker = unknown if machine == "unregistered" else self.worker(machine)
        got = self.store.claim_build(f"c{number}", worker, lease)
        self._claims.setdefault(number, got)
        if got is None:
            return "nothing"
        assert got.archive_sha256 == SHA256 and self.store.file(SHA256) == ARCHIVE
        return f"build {number}: order {got.build_id}, {got.recipe}"

    def _build(self, number: int, over: dict[str, object]) -> HeldBuild:
        """What a worker holds, or what it pretends to hold."""
        wrong = {
            name: over.pop(name) for name in ("build_id", "claim_id", "worker_id") & over.keys()
        }
        return replace(self._claim(number), **wrong)

    def publish(self, number: int, **over) -> str:
        """Both engines; of a file, `plus_bench` and the like are not true."""
        held = self._build(number, over)
        sides = {"plus": built(PLUS, 1234), "minus": built(MINUS, 4321)}
        for name in [name for name in over if name.startswith(("plus", "minus"))]:
            side, _, fact = name.partition("_")
            sides[side] = replace(sides[side], **{fact or "size": over.pop(name) or 0})
        result = build_result(held, **{"requires": WORDS, **sides, **over})
        return self.store.publish_build(result, PLUS, MINUS)

    def give_back(self, number: int, reason: str | None = None, **over) -> None:
        self.store.fail_build(self._build(number, over), reason)

    def renew(self, number: int, lease: float = LEASE, **over) -> bool:
        return self.store.renew_build(self._build(number, over), lease)

    def state(self) -> Iterator[str]:
        (found,) = self.store.ordered_builds([KEY])
        yield f"{found.builders} may build it; failed: {found.failures}"
        for worker, machine in sorted(self.store.active_workers(), key=lambda one: one[1].name):
            may = "may build" if machine.may_build else "may not build"
            yield f"active: {machine.name}, {may}, {' '.join(worker.words)}"
        for one in found.engines or ():
            content = self.store.file(one.sha256)
            yield f"{content}: {one.size}, {one.bench}, {one.target}, requires {found.requires}"

    def source(self, machine: str) -> str:
        return "no" if self.store.place_of(machine, SHA256) is None else "given"


STORY = Orders


@pytest.mark.parametrize("heading", headings(__file__))
def test_builds_of_workers(heading, story):
    story(heading, long="x" * 5000, unprintable="a\x1b[31m", archive=SHA256, unknown="a" * 64)
