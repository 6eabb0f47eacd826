"""`benches.papers table1` at a shell: text, JSON, refusals, processes, and leaving by Ctrl-C."""

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from benches.papers.__main__ import papers
from benches.papers.commands.check import far_cells
from benches.papers.table1 import Losses, Row, Table1Cell

SHORT = ("table1", "--iterations", "40", "--runs", "210")


def found(*more: str) -> dict[str, Any]:
    result = CliRunner().invoke(papers, [*SHORT, "--json", *more])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert isinstance(answer, dict)
    return answer


@pytest.mark.slow
def test_the_table_has_a_line_for_every_rule_and_size() -> None:
    done = CliRunner().invoke(papers, [*SHORT])
    assert done.exit_code == 0, done.output
    title, heading, *lines = done.stdout.splitlines()
    assert title.strip() == "40 iterations of one pair, 210 runs: Elo gained of 2"
    assert " ".join(heading.split()) == "rule n gained +- lost +- exact z limit lost/limit"
    rules = ("spsa", "bspsas", "bspsa", "bspsa-told")
    assert [line.split()[:2] for line in lines] == [
        [rule, str(n)] for rule in rules for n in (1, 4, 16, 64)
    ]


def test_a_mean_that_is_far_from_the_published_one_is_reported() -> None:
    cell = Table1Cell(row=Row.SPSA, n=4)
    usual = Losses(cell=cell, runs=50, mean=0.008, deviation=0.005)
    assert list(far_cells([usual])) == []
    paper, exact = far_cells([replace(usual, mean=0.02)])
    assert "spsa with n = 4" in paper and "from the paper" in paper and "from exact" in exact
