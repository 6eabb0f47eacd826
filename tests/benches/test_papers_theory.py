"""`benches.papers theory` at a shell: the published design, and formulas beside simulation."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from benches.papers.__main__ import papers

THEORY = ("theory", "--replicas", "300")
COARSE = ("--precision", "8", "--elo", "40", "--start-elo", "30")  # few games


def found(*more: str) -> dict[str, Any]:
    result = CliRunner().invoke(papers, [*THEORY, "--json", *more])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert isinstance(answer, dict)
    return answer


@pytest.mark.slow
def test_van_den_berghs_example_to_the_digits_printed():
    done = CliRunner().invoke(papers, [*THEORY, "--replicas", "10"])
    assert done.exit_code == 0, done.output
    for line in (
        "r = 0.003111, c = 0.166667 of the range, 376868 games",
        "the loss halves in 43537.498565 games",
        "loses 0.210799 Elo on average, less than 0.176897 in half of all runs and than 0.500000",
        "after the games it loses 1.021039 times as much",
    ):
        assert line in done.stdout
    (last,) = [line.split() for line in done.stdout.splitlines() if "376868  Elo lost, 95%" in line]
    assert last[4] == "0.510440"


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        (),
        ("--in-turn",),
        ("--direct", "-n", "1"),
        ("--elo", "60,20,10", "--guessed-elo", "30"),
        ("--by-rule",),
        ("--by-rule", "--bias", "0.1"),
        ("--by-rule", "--in-turn", "--draw-rate", "0.2"),
    ],
    ids=" ".join,
)
def test_simulations_agree_with_the_formulas(how):
    answer = found(*COARSE, *how)
    checks = answer["checks"]
    assert max(check["games"] for check in checks) == pytest.approx(answer["games"], abs=2)
    assert len(checks) == 24
    assert all(abs(check["z"]) < 4.5 for check in checks), checks
