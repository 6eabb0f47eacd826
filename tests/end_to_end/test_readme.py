"""What the README says of lifecycles, queries and commands is so."""

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from builders import stage
from shell import Shell

from spsa.cli import COMMANDS
from spsa.db.store import Store
from spsa.lifecycle import BATCH, ITERATION, RUN

README = (Path(__file__).parents[2] / "README.md").read_text()
TABLES: Mapping[str, Mapping[Any, frozenset[Any]]] = {
    "run": RUN,
    "iteration": ITERATION,
    "batch": BATCH,
}


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language; a fence that closes one block opens no other."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text for found, text in fenced if found == language]


def diagram() -> dict[str, dict[str, set[str]]]:
    """The README's lifecycles: table -> state -> states it may become."""
    (text,) = [block for block in blocks("") if block.startswith("run        running")]
    found: dict[str, dict[str, set[str]]] = {}
    table = ""
    for line in text.splitlines():
        head, _, targets = line.partition(" -> ")
        table = head.split()[0] if len(head.split()) == 2 else table
        found.setdefault(table, {})[head.split()[-1]] = set(targets.split(" | "))
    return found


def spelled(table: Mapping[StrEnum, frozenset[StrEnum]]) -> dict[str, set[str]]:
    return {str(a): {str(b) for b in to} for a, to in table.items() if to}


@pytest.mark.parametrize("name", TABLES)
def test_the_lifecycles_are_those_of_the_code(name: str) -> None:
    assert diagram()[name] == spelled(TABLES[name])


def test_every_query_runs(store: Store, sql: Shell) -> None:
    stage(store).whole_iteration()
    queries = [q.strip() for block in blocks("sql") for q in block.split(";") if q.strip()]
    assert len(queries) >= 4
    answers = [sql(query.replace("'demo'", "'first'")) for query in queries]
    assert answers[0], "spsa_progress has the iteration that was played"


def test_every_command_it_names_exists() -> None:
    named = set(re.findall(r"spsa-master ([a-z]+)", README))
    assert named <= set(COMMANDS), named - set(COMMANDS)
    assert {"run", "init", "status", "validate", "doctor"} <= named
