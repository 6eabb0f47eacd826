"""`python -m benches.papers compare`."""

import json
from typing import Any

from click.testing import CliRunner, Result

from benches.papers.commands.compare import compare

QUICK = ("--rules", "mixture,fishtest", "--budgets", "600", "--problems", "2", "--batch", "75")


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(compare, arguments)


def answer(*arguments: str) -> Any:
    result = ran(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_text_has_every_rule_with_its_difference_and_every_family():
    result = ran(*QUICK)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("half judge, seed 1: 70 problems, 75 pairs an iteration")
    assert "minus mixture" in lines[1]
    assert [line.split()[0] for line in lines[2:4]] == ["mixture", "fishtest"]
    assert "heterogeneous" in result.stdout and "settled" in result.stdout


def test_json_has_every_cell_and_repeats_itself():
    found = answer(*QUICK)
    (contest,) = found["contests"]
    assert [one["rule"] for one in contest["rules"]] == ["mixture", "fishtest"]
    cells = contest["rules"][0]["cells"]
    assert {(cell["parameters"], cell["budget"]) for cell in cells} == {
        (4, 600), (16, 600), (64, 600), (8, 720), (8, 900),
    }  # fmt: skip
    assert all(len(cell["recovered"]) == 2 for cell in cells)
    assert answer(*QUICK) == found
