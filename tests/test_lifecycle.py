"""The status tables: sane in themselves, and what the database and the store really follow."""

import ast
from pathlib import Path

import pytest
import sqlalchemy as sa

import spsa.store
from spsa.connection import create_engine, parse_url
from spsa.lifecycle import (
    BATCH,
    ITERATION,
    RUN,
    BatchStatus,
    IterationStatus,
    Purpose,
    RunStatus,
    sources,
    terminal,
)

TABLES = {RunStatus: RUN, IterationStatus: ITERATION, BatchStatus: BATCH}
FIRST = {RunStatus: "running", IterationStatus: "pending", BatchStatus: "ready"}
COLUMNS = {
    ("spsa_run", "status"): RunStatus,
    ("spsa_iteration", "status"): IterationStatus,
    ("spsa_iteration", "purpose"): Purpose,
    ("spsa_batch", "status"): BatchStatus,
}


@pytest.mark.parametrize(("words", "table"), TABLES.items())
def test_every_status_has_its_row_and_leads_to_known_ones(words, table):
    assert set(table) == set(words)
    assert all(targets <= set(words) for targets in table.values())


@pytest.mark.parametrize(("words", "table"), TABLES.items())
def test_every_status_is_reached_and_every_one_can_end(words, table):
    ends = terminal(table)
    assert ends
    assert _reachable(table, words(FIRST[words])) == set(words)
    assert all(_reachable(table, status) & ends for status in words)


def _reachable(table, start):
    known, todo = {start}, [start]
    while todo:
        new = table[todo.pop()] - known
        known |= new
        todo += new
    return known


@pytest.mark.parametrize("table", TABLES.values())
def test_sources_turn_the_table_round(table):
    assert all(
        (to in table[source]) == (source in sources(table, to)) for to in table for source in table
    )


def test_what_is_over_stays_over():
    assert terminal(RUN) == {RunStatus.FINISHED, RunStatus.STOPPED}
    assert terminal(ITERATION) == {IterationStatus.COMPLETE, IterationStatus.ABANDONED}
    assert terminal(BATCH) == {BatchStatus.STRUCK}


def test_the_database_takes_just_these_words(database_url):
    engine = create_engine(parse_url(database_url), durable=False)
    with engine.begin() as connection:
        seen = sa.inspect(connection)
        for (table, column), words in COLUMNS.items():
            (check,) = (
                constraint["sqltext"]
                for constraint in seen.get_check_constraints(table)
                if constraint["name"] == f"ck_{table}_{column}"
            )
            quoted = {word.split("'")[0] for word in check.split("'")[1::2]}
            assert quoted == {str(word) for word in words}
            default = next(c["default"] for c in seen.get_columns(table) if c["name"] == column)
            assert default.split("'")[1] in quoted
    engine.dispose()


def _updates_of_status():
    """Every chain `update(...).where(...).values(status=...)` of the store: (place, its source)."""
    for path in sorted(Path(spsa.store.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if _writes_status(node) and not _inserts(node):
                yield f"{path.name}:{node.lineno}", ast.unparse(node)


def _writes_status(node):
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "values"
        and any(keyword.arg == "status" for keyword in node.keywords)
    )


def _inserts(node):
    return ".insert()" in ast.unparse(node)


# guards that say the same in other words, each where the table's own guard would say too little
_OWN_GUARD = {
    "_own(batch_id": "a claim's holder; `_own` asks may_become",
    "batches.c.id == batch_id).values(status=BatchStatus.LEASED": (
        "locked and chosen as free in the same transaction"
    ),
    "batches.c.status == BatchStatus.LEASED": "expired for good; failed comes from leased only",
}


def test_every_change_of_a_status_asks_the_table():
    found = dict(_updates_of_status())
    assert len(found) >= 9
    unguarded = {
        place: text
        for place, text in found.items()
        if "may_become(" not in text and not any(guard in text for guard in _OWN_GUARD)
    }
    assert unguarded == {}
    assert (
        "may_become("
        in Path(spsa.store.__file__)
        .with_name("reports.py")
        .read_text()
        .split("def _own(")[1]
        .split("def ")[0]
    )
    assert sources(BATCH, BatchStatus.FAILED) == {BatchStatus.LEASED}
