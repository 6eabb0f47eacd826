"""A person with an SQL client on the tuner's database: any statement, later times, invariants."""

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from spsa.db.database import create_engine
from spsa.db.url import parse_url

_PAST = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f', 'now', '-60 seconds')",
    "postgresql": "clock_timestamp() - interval '60 seconds'",
}
_QUERIES = Path(__file__).with_name("invariants.sql").read_text(encoding="utf-8").split("-- ")[1:]
_ALL = " UNION ALL ".join(
    f"SELECT '{name}' FROM ({query.rstrip()}) AS q{i}"  # noqa: S608
    for i, (name, _, query) in enumerate(query.partition("\n") for query in _QUERIES)
)


class Shell:
    """Runs SQL text, a transaction each: `shell("UPDATE ... WHERE id = :id", id=1)`; its rows."""

    def __init__(self, url: str) -> None:
        self._engine = create_engine(parse_url(url), durable=False)
        self.dialect = self._engine.dialect.name

    def __call__(self, text: str, **values: Any) -> list[Any]:
        with self._engine.begin() as connection:
            result = connection.execute(sa.text(text), values)
            return list(result) if result.returns_rows else []

    def expire(self, batch_id: int | None = None, *, run_id: int | None = None) -> None:
        """Time passes for one lease: a batch's, or a master's."""
        past = f"SET lease_expires_at = {_PAST[self.dialect]} WHERE id = :id"
        self(f"UPDATE spsa_batch {past} AND status = 'leased'", id=batch_id)
        self(f"UPDATE spsa_run {past} AND master_id IS NOT NULL", id=run_id)

    def close(self) -> None:
        self._engine.dispose()


def broken(sql):
    """The invariants of a tuning database that do not hold; `sql` runs a query.

    The SQL is our own: no code of the store is trusted. Neither what the constraints of the tables
    keep is there, nor theta, which `check_run` compares.
    """
    return [name for (name,) in sql(_ALL)]
