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
    assert " ".join(heading.split()) == "rule n gained +- z lost +- exact z limit lost/limit"
    rules = ("spsa", "bspsas", "bspsa", "bspsa-told")
    assert [line.split()[:2] for line in lines] == [
        [rule, str(n)] for rule in rules for n in (1, 4, 16, 64)
    ]


@pytest.mark.slow
def test_json_has_the_figures_unrounded_and_none_that_nobody_published() -> None:
    answer = found("--rules", "bspsa,mixture")
    assert (answer["iterations"], answer["runs"], answer["seed"]) == (40, 210, 1)
    assert [(c["rule"], c["parameters"]) for c in answer["cells"]] == [
        (rule, n) for rule in ("bspsa", "mixture") for n in (1, 4, 16, 64)
    ]
    for cell in answer["cells"]:
        assert cell["gain"] == pytest.approx(2 - cell["loss"])
        assert cell["loss_of_limit"] == pytest.approx(cell["loss"] / cell["limit"])
        assert cell["published_gain"] is cell["z_published"] is None
        assert (cell["expected_loss"] is None) == (cell["rule"] == "mixture")


def test_figures_depend_on_the_seed_and_on_nothing_else() -> None:
    one = found("--rules", "spsa,bspsa")
    assert found("--rules", "spsa,bspsa", "-j", "2") == one
    assert found("--rules", "bspsa")["cells"] == one["cells"][4:]
    assert found("--rules", "bspsa", "-n", "4", "-n", "64")["cells"] == one["cells"][5::2]
    other = found("--rules", "spsa,bspsa", "--seed", "2")
    assert all(a["loss"] != b["loss"] for a, b in zip(one["cells"], other["cells"], strict=True))


def test_the_rules_themselves_play_the_same_table() -> None:
    answer = found("--rules", "bspsas", "--by-rule")
    assert all(abs(cell["z_expected"]) < 4 for cell in answer["cells"])


def test_a_mean_that_is_far_from_the_published_one_is_reported() -> None:
    cell = Table1Cell(row=Row.SPSA, n=4)
    usual = Losses(cell=cell, runs=50, mean=0.008, deviation=0.005)
    assert list(far_cells([usual])) == []
    paper, exact = far_cells([replace(usual, mean=0.02)])
    assert "spsa with n = 4" in paper and "from the paper" in paper and "from exact" in exact
