"""A store whose connection breaks when it is told to: before a commit, or after it."""

from contextlib import contextmanager
from typing import Literal

from asking import Store

from spsa.errors import DatabaseUnreachable

Cut = Literal["before", "after"] | None


class CutStore(Store):
    """Counts its writing transactions; the one numbered `at` is cut, before or after its commit.

    Either way the caller learns only that the database did not answer.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url, durable=False)
        self.writes = 0
        self.at: int | None = None
        self.cut: Cut = None

    def cut_next(self, cut: Cut) -> None:
        self.at, self.cut = self.writes + 1, cut

    @contextmanager
    def _write(self):
        self.writes += 1
        cut = self.cut if self.writes == self.at else None
        with super()._write() as connection:
            yield connection
            if cut == "before":
                raise DatabaseUnreachable("cut before the commit")
        if cut == "after":
            raise DatabaseUnreachable("cut after the commit")


class Killed(BaseException):
    """The process is gone."""


class KillableStore(CutStore):
    """Where it `dies`, an answer that is lost is the end of the process that asked."""

    dies = False

    @contextmanager
    def _write(self):
        try:
            with super()._write() as connection:
                yield connection
        except DatabaseUnreachable:
            if self.dies:
                raise Killed from None
            raise
