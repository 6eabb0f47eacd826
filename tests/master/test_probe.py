"""A value with which no engine can be built is a finding of its own, not one of its pair."""

from dataclasses import replace

import pytest
from builders import TERMS, new_engine, parameter
from console import FIXTURES
from masters import FixedDelivery

from spsa.builds.smoke import limit_of_depth, limit_of_nodes
from spsa.core.params import Space
from spsa.db.master_queries import Side, Sides
from spsa.errors import BuildFailed
from spsa.master.probe import Probed, Prober, Search, Tried, _quicker

ENGINE = (FIXTURES / "probe/engine.sh").read_text()
FEN = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


class Picky(FixedDelivery):
    """Builds one script for all values but those above 50."""

    def __init__(self, folder):
        super().__init__()
        self.script = folder / "engine"
        self.script.write_text(ENGINE)
        self.script.chmod(0o755)

    def prepare(self, plus, minus):
        if max(plus["margin"], minus["margin"]) > 50:
            raise BuildFailed("margin overflows\nand more of the compiler")
        side = Side(new_engine("script", path=str(self.script)))
        return Sides(side, side)


def test_the_side_that_can_be_built_is_searched(tmp_path):
    margin = parameter("margin")
    prober = Prober(Space((margin,)), Picky(tmp_path), TERMS, [FEN], 5000)
    start, reproducible = prober.start()
    assert reproducible
    found = prober.probed(margin, start, bounds=False)
    assert found.tried["plus"].failure == "margin overflows"
    assert (found.tried["minus"].failure, found.tried["minus"].value) == ("", 42)
    assert found.tried["minus"].searches == start.searches != ()
    asked = (tmp_path / "engine.log").read_text().split("\n")
    assert {"go nodes 1000", "go nodes 5000"} <= {*asked}, "a game is quicker than a search"
    assert found.fails and found.is_dead
    assert found.findings[0] == "fails at plus = 58: margin overflows"


def test_a_group_goes_down_where_a_step_up_leads_out_of_its_bounds(tmp_path):
    near = parameter("margin", value=48, maximum=50)
    prober = Prober(Space((near,)), Picky(tmp_path), TERMS, [FEN], 100)
    (dead,) = prober.group_if_dead([near], prober.start()[0])
    assert dead.tried["plus"].value == 40


def test_a_step_that_changes_nearly_every_move_is_an_index_or_a_size():
    def tried(*moves):
        return Tried(value=1, searches=tuple(Search(move=one, score=1, nodes=1) for one in moves))

    start = tried(*("e2e4" for _ in range(20)))
    others = {
        "an index or a size": tried(*("d2d4" for _ in range(20))),
        "": tried("e2e4", "e2e4", *("d2d4" for _ in range(18))),
    }
    for said, side in others.items():
        probed = Probed(parameter=parameter("margin"), start=start, tried={"plus": side})
        assert said in "".join(probed.findings) and bool(said) == bool(probed.findings)


def test_what_both_steps_change_is_measured_and_a_bound_like_its_step_is_told():
    def tried(value, *found):
        searches = tuple(Search(move=move, score=score, nodes=1) for move, score in found)
        return Tried(value=value, searches=searches)

    start = tried(50, ("e2e4", 0), ("d2d4", 10))
    plus, minus = tried(58, ("e2e4", 40), ("c2c4", 110)), tried(42, ("e2e4", 0), ("d2d4", None))
    least, most = replace(minus, value=0), replace(plus, value=58)
    sides = {"plus": plus, "minus": minus, "min": least, "max": most}
    probed = Probed(parameter=parameter("margin"), start=start, tried=sides)
    assert (probed.moves_changed, probed.score_change) == (1 / 4, (40 + 100 + 0) / 3)
    assert probed.findings == ("clamped: min = 0 finds what 42 finds",)
    assert not probed.is_dead and not probed.fails
    same = replace(probed, tried={"plus": replace(start, value=58)})
    assert same.is_dead and (same.moves_changed, same.score_change) == (0.0, 0.0)
    assert not replace(same, tried={"plus": replace(start, bench=7)}).is_dead
    assert not replace(same, tried={}).is_dead and replace(same, tried={}).findings == ()


@pytest.mark.parametrize(
    ("limit", "quicker"),
    [
        (limit_of_nodes(900), b"go nodes 900\n"),
        (limit_of_nodes(5_000), b"go nodes 1000\n"),
        (limit_of_nodes(50_000), b"go nodes 5000\n"),
        (limit_of_depth(9), b"go depth 4\n"),
        (limit_of_depth(1), b"go depth 1\n"),
    ],
)
def test_games_of_positions_are_quick_but_no_move_is_asked_of_too_few_nodes(limit, quicker):
    assert _quicker(limit).go == quicker
