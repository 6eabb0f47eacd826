"""A store whose connection breaks when it is told to: before a commit, or after it."""

from contextlib import contextmanager
from typing import Literal

import sqlalchemy as sa

from spsa.db.store import ServerStore, Store
from spsa.errors import (
    DatabaseUnreachable,
)

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


class ServerCutStore(CutStore, ServerStore):
    """The same on a PostgreSQL server, where a worker calls functions."""

    @contextmanager
    def _call(self):
        with self._write() as connection:
            yield connection


def cut_store(url: str) -> CutStore:
    """The one for the database of this URL."""
    return (CutStore if url.startswith("sqlite") else ServerCutStore)(url)


class StatementCutStore(Store):
    """Counts all its statements, reading ones too; the one numbered `at` never arrives."""

    def __init__(self, url: str) -> None:
        super().__init__(url, durable=False)
        self.statements = 0
        self.at: int | None = None
        sa.event.listen(self._engine, "before_cursor_execute", self._pass)

    def _pass(self, *_: object) -> None:
        self.statements += 1
        if self.statements == self.at:
            raise DatabaseUnreachable("cut before a statement")


class ServerStatementCutStore(StatementCutStore, ServerStore):
    """The same on a PostgreSQL server."""


def statement_cut_store(url: str) -> StatementCutStore:
    """The one for the database of this URL."""
    return (StatementCutStore if url.startswith("sqlite") else ServerStatementCutStore)(url)


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
