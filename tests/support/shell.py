"""Somebody with a shell on the tuner's database: any statement, and the passing of time."""

from typing import Any

import sqlalchemy as sa

from spsa.db.database import create_engine
from spsa.db.url import parse_url

_PAST = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f', 'now', '-60 seconds')",
    "postgresql": "clock_timestamp() - interval '60 seconds'",
}


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
