"""The status tables: sane in themselves, and what the database and the store really follow."""

import re

import sqlalchemy as sa

from spsa.db.base import _statement, named_texts
from spsa.db.database import create_engine
from spsa.db.url import parse_url
from spsa.lifecycle import BATCH, ITERATION, BatchStatus, IterationStatus, Purpose, RunStatus

COLUMNS = {
    ("spsa_run", "status"): RunStatus,
    ("spsa_iteration", "status"): IterationStatus,
    ("spsa_iteration", "purpose"): Purpose,
    ("spsa_batch", "status"): BatchStatus,
}


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


_UPDATE = re.compile(r"UPDATE spsa_(batch|iteration)\s+(SET .*?)\sWHERE (.*)", re.DOTALL)
_WORD = re.compile(r"'(\w+)'")
_STATUS = re.compile(r"\b(?:b\.|spsa_batch\.)?status (?:= |IN \()('\w+'(?:, '\w+')*)")
STATEMENTS = {name for kind, name in named_texts("protocol.sql") if kind == "name"}
CHANGES = {
    "claim": {("ready", "leased")},
    "claim.tried": {("ready", "leased"), ("leased", "leased")},
    "claim.begin": {("pending", "in_progress")},
    "report": {("leased", "done")},
    "give_back": {("leased", "ready")},
    "withdraw": {("leased", "ready")},
    "exhaust": {("ready", "failed"), ("leased", "failed")},
    "resume": {("failed", "ready")},
    "purge": {("done", "purged")},
}
"""What the statements of protocol.sql do with the status of a batch or an iteration."""


def changes_of(name):
    """From the text: the words that SET gives the status, and those that the row has before."""
    for table, gives, condition in _UPDATE.findall(str(_statement(name, "postgresql"))):
        words = BatchStatus if table == "batch" else IterationStatus
        given = re.search(r"\bstatus = ('\w+'|CASE.*? END)", gives)
        after = {words(word) for word in _WORD.findall(given[1])} if given else set()
        before = {word for found in _STATUS.findall(condition) for word in _WORD.findall(found)}
        yield from ((source, to) for to in after for source in before & set(words))


def test_every_change_of_a_status_in_sql_is_in_the_table():
    found = {name: set(changes_of(name)) for name in STATEMENTS}
    assert {name: changes for name, changes in found.items() if changes} == CHANGES
    for name, changes in CHANGES.items():
        words, table = (
            (IterationStatus, ITERATION) if name == "claim.begin" else (BatchStatus, BATCH)
        )
        assert all(words(to) in table[words(source)] for source, to in changes), name
