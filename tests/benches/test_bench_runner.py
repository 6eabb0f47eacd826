"""The runner's bench: what it reads and reckons, and one short match of each kind."""

import chess
import pytest
from engines.faulty import LOSER, WINNER, engine, start_book

from benches.runner.agreement import chi_square
from benches.runner.contenders import FIRST, SECOND, Limit, Plan, compete, naive
from benches.runner.delays import delays, echoes
from benches.runner.games import played
from benches.runner.matches import play
from spsa.core.scoring import Tally


def test_equal_pentanomials_agree_and_others_do_not():
    same = chi_square((20, 50, 100, 50, 20), (20, 50, 100, 50, 20))
    assert (same.statistic, same.degrees, same.p) == (0.0, 4, 1.0)
    assert chi_square((20, 50, 100, 50, 20), (5, 30, 100, 70, 35)).p < 0.01


@pytest.fixture
def match(tmp_path):
    return Plan(
        engines=(engine(tmp_path, FIRST, moves=WINNER), engine(tmp_path, SECOND, moves=LOSER)),
        options=(),
        book=start_book(tmp_path),
        limit=Limit("nodes", "3000"),
        pairs=2,
        concurrency=1,
        max_moves=50,
    )


@pytest.mark.parametrize("contender", [compete(), naive()], ids=lambda one: one.name)
def test_every_contender_is_read_alike(contender, match, tmp_path):
    match.book.write_text(f"{chess.STARTING_FEN}\n")
    outcome = play(contender, match, tmp_path / "match")
    assert outcome.games.tally == Tally(4, 0, 0, (0, 0, 0, 0, 2))
    assert (outcome.games.plies, outcome.games.time_losses) == (2 * (7 + 4), 0)
    assert 0 < outcome.used.cpu < 30
    assert 5 < outcome.used.memory < 100
    assert {(game.round, game.as_white, game.result) for game in played(outcome.pgn)} == {
        (1, True, "1-0"), (1, False, "0-1"), (2, True, "1-0"), (2, False, "0-1"),
    }  # fmt: skip


def test_delays_are_between_one_engines_answer_and_the_others_question(match, tmp_path):
    place = tmp_path / "echo"
    place.mkdir()
    match.book.write_text(f"{chess.STARTING_FEN}\n")
    plan = match.of(engines=echoes(place, 20, 0.0), pairs=2, max_moves=10)
    play(compete(), plan, place / "match")
    waits = delays(place)
    assert len(waits) == 4 * 19
    assert all(wait > 0 for wait in waits)
