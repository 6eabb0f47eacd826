"""The invariants of a tuning database, asked in SQL of our own: no code of the store is trusted.

Not those that the constraints of the tables keep, nor that of theta, which `check_run` compares.
"""

from pathlib import Path

_QUERIES = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").split("-- ")[1:]
_ALL = " UNION ALL ".join(
    f"SELECT '{name}' FROM ({query.rstrip()}) AS q{i}"  # noqa: S608
    for i, (name, _, query) in enumerate(query.partition("\n") for query in _QUERIES)
)


def broken(sql):
    """The invariants that do not hold; `sql` runs a query."""
    return [name for (name,) in sql(_ALL)]
