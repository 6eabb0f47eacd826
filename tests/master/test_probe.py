"""A value with which no engine can be built is a finding of its own, not one of its pair."""

from dataclasses import replace
from pathlib import Path

import pytest
from builders import NODES, TERMS, new_engine, parameter
from console import FIXTURES
from golden import compare_cases
from masters import FixedDelivery

from spsa.builds.smoke import limit_of
from spsa.core.game_settings import TimeKind
from spsa.core.params import Space
from spsa.db.master_queries import Side, Sides
from spsa.errors import BuildFailed, SmokeTestFailed
from spsa.master.probe import A_GAME, Probed, Prober, Search, Tried, _quicker

ENGINE = (FIXTURES / "probe/engine.sh").read_text()
FEN = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
BEFORE_MATE = "rnbqkbnr/ppp2ppp/3p4/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 0 1"


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
    prober = Prober(Space((margin,)), Picky(tmp_path), TERMS, [FEN] * 4, 5000)
    start, reproducible = prober.start()
    assert reproducible and len(prober.positions) == 4 * A_GAME, "of each opening of a short book"
    found = prober.probed(margin, start, bounds=False)
    assert found.tried["plus"].failure == "margin overflows"
    assert (found.tried["minus"].failure, found.tried["minus"].value) == ("", 42)
    assert found.tried["minus"].searches == start.searches != ()
    asked = (tmp_path / "engine.log").read_text().split("\n")
    assert {"go nodes 1000", "go nodes 5000"} <= {*asked}, "a game is quicker than a search"
    assert found.is_useless and found.is_dead
    assert found.findings[0] == "fails at plus = 58: margin overflows"
    prober.delivery.script.write_text(ENGINE.replace("isready)", "*fen*) exit 3 ;; isready)"))
    with pytest.raises(SmokeTestFailed, match=f"[|] asked: position fen {FEN}"):
        prober.start()


def test_a_game_of_the_engine_ends_with_a_mate_or_an_illegal_move(tmp_path):
    games = (BEFORE_MATE, "e2e4", "h5f7", 0), (FEN, "g8f6", "g8g6", 1), (FEN, "g8f6", "0000", 1)
    for fen, own, other, number in games:
        prober = Prober(Space((parameter("margin"),)), Picky(tmp_path), TERMS, [fen], 5000)
        prober.delivery.script.write_text(ENGINE.replace(own, other))
        found, _ = prober.start()
        assert len(prober.positions) == number
    assert found.searches == (Search("", None, 0),), "a legal move was there"


def test_a_group_goes_down_where_a_step_up_leads_out_of_its_bounds(tmp_path):
    near = parameter("margin", value=48, maximum=50)
    prober = Prober(Space((near,)), Picky(tmp_path), TERMS, [FEN], 100)
    (dead,) = prober.group_if_dead([near], prober.start()[0])
    assert dead.tried["plus"].value == 40
    prober.nodes, prober.settings = None, replace(TERMS, time_control=replace(NODES, low=1000))
    prober.start()
    assert [limit.go for limit in prober.limits] == [b"go nodes 1500\n"]


def test_what_is_found_of_a_parameter_and_how_a_limit_is_made_quick():
    def shown(files):
        if "limit" in files:
            kind, number = files["limit"].split()
            yield _quicker(limit_of(TimeKind(kind), int(number))).go.decode().strip()
            return
        tried = {}
        for point, text in files.items():
            value, *found = text.split()
            scores = [one.partition(":")[::2] for one in found if ":" in one]
            searches = tuple(Search(move, int(n) if n else None, 1) for move, n in scores)
            failure = "" if searches else " ".join(found)
            tried[point] = Tried(value=int(value), searches=searches, failure=failure)
        probed = Probed(parameter=parameter("margin"), start=tried.pop("start"), tried=tried)
        yield f"moves {probed.moves_changed:.3g}, scores {probed.score_change:.4g}"
        yield from probed.findings
        yield from ["nothing to tune"] * probed.is_useless

    compare_cases(Path(__file__).with_name("findings.txt"), shown)
    start, facts = Tried(value=50), {"parameter": parameter("margin")}
    benches = [
        Probed(start=start, tried={"plus": replace(start, bench=n)}, **facts) for n in (None, 7)
    ]
    assert [one.is_dead for one in benches] == [True, False]
