"""The README is one page; the lifecycles and queries of the docs are those of the code."""

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from builders import stage
from shell import Shell

from spsa.cli import COMMANDS
from spsa.db import Store
from spsa.lifecycle import BATCH, ITERATION, RUN

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
TABLES: Mapping[str, Mapping[Any, frozenset[Any]]] = {
    "run": RUN,
    "iteration": ITERATION,
    "batch": BATCH,
}


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language; a fence that closes one block opens no other."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for found, block in fenced if found == language]


def diagram() -> dict[str, dict[str, set[str]]]:
    """The lifecycles of the page: table -> state -> states it may become."""
    (text,) = [block for block in blocks(ARCHITECTURE, "") if block.startswith("run        ")]
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
    queries = [q.strip() for block in blocks(OPERATIONS, "sql") for q in block.split(";")]
    results = [sql(query.replace("'demo'", "'first'")) for query in queries if query]
    assert len(results) >= 4
    assert results[0], "spsa_progress has the iteration that was played"


def test_the_readme_is_one_page_with_the_commands_of_a_run() -> None:
    named = set(re.findall(r"spsa-master ([a-z]+)", README))
    assert {"init", "plan", "run", "status", "validate", "params"} <= named <= set(COMMANDS)
    assert len(README.splitlines()) <= 90
