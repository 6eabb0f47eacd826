"""Whatever an engine writes: its numbers stay in their ranges, its text on one printable line."""

import json
import re

import chess
import pytest
from console import compete, games_of
from engines.faulty import LOSER, WINNER, engine, start_book
from fuzzing import fuzz, made
from hypothesis import example, given

from spsa.core.game_settings import MATE, MAX_DEPTH, MAX_NODES, MAX_NODES_OF_BATCH, TimeControl
from spsa.core.uci_options import Declarations
from spsa.errors import EngineFault
from spsa.openings.book import Opening
from spsa.text import FAILURE_LENGTH, VOID_REASON_LENGTH, VOID_REASONS
from spsa.uci.engine import SearchReply, last_info
from worker.match.report import pgn_of
from worker.runner.game import NOTHING_PLAYED, Game, Pair, Pairing, with_pair
from worker.runner.position import Termination, drawn

INFO = "info depth score cp mate lowerbound nodes nps time hashfull pv string e2e4 bestmove ponder"
BLANKS = (" ", " ", " ", " ", "  ", "\t", "\r", "\v", "\u00a0", "")


def line(chance, known):
    """Words of UCI, numbers and others, between blanks of all kinds."""

    def word():
        kind = chance.randrange(3)
        found = chance.choice(known.split()) if kind else chance.text(2)
        return (chance.number() if kind == 2 else found) + chance.choice(BLANKS)

    return "".join(chance.many(word, 16))


def info(chance):
    """Mostly such as a search says, with its numbers replaced."""
    if chance.random() < 0.5:
        return line(chance, INFO)
    depth, score, nodes, nps, time = (chance.number() for _ in range(5))
    kind = chance.choice(["cp", "mate", "wdl"])
    return f"info depth {depth} score {kind} {score} nodes {nodes} nps {nps} time {time} pv e2e4"


def search(chance):
    return "\n".join(chance.many(lambda: info(chance), 4))


@given(said=made(search), move=made(lambda chance: line(chance, "bestmove e2e4 e7e8q")))
@example(said="info depth 1 score cp 3 nodes 18446744073709551615 pv e2e4", move="bestmove e2e4")
@example(said="info depth 1 score cp -9999999999 nodes -1", move="bestmove e2e4")
@example(said=f"info depth {'9' * 5000} score mate {'9' * 5000} nodes {'9' * 5000}", move="")
@example(said="info depth 5x score cp 5x nodes 12x", move="bestmove e2e4x")
@fuzz()
def test_numbers_of_a_search_stay_in_their_ranges(said, move):
    heard = bytearray(b"\n" + said.encode(errors="replace") + b"\n")
    last = last_info(heard, len(heard))
    try:
        answer = SearchReply.of(move.encode(errors="replace"), last, 0.5)
    except EngineFault as fault:
        refused_in_print(fault)
        answer = SearchReply.of(b"bestmove e2e4", last, 0.5)
    assert re.fullmatch(r"[a-h][1-8][a-h][1-8][qrbn]?", answer.move)
    score = answer.score
    assert score is None or -MATE <= score <= MATE
    assert 0 <= answer.nodes <= MAX_NODES and 0 <= answer.depth <= MAX_DEPTH
    for name, number in (("nodes", answer.nodes), ("depth", answer.depth)):
        assert not number or re.search(rb"\s%s 0*%d(\s|$)" % (name.encode(), number), last)
    assert_can_be_written_down(answer._replace(move="e2e4"))


def refused_in_print(fault):
    assert str(fault).isprintable() and len(str(fault)) <= FAILURE_LENGTH
    assert fault.reason.isprintable() and len(fault.reason) <= VOID_REASON_LENGTH


def assert_can_be_written_down(answer):
    """In a PGN, and in the columns of a batch."""
    pairing = Pairing(number=0, opening=Opening(chess.STARTING_FEN), time=1.0)
    game = Game(drawn(Termination.DRAW), (answer,), chess.WHITE)
    pair = Pair(pairing, game, game)
    written = "".join(pgn_of(pair, "plus", "minus", TimeControl(low=1, high=1)))
    assert all(line.isprintable() for line in written.split("\n"))
    fits_its_columns(with_pair(NOTHING_PLAYED, pair))


def fits_its_columns(result):
    for number in (result.plus_nodes, result.minus_nodes, result.moves):
        assert 0 <= number <= MAX_NODES_OF_BATCH
    assert result.plus_nodes + result.minus_nodes < 2**63
    assert len(result.voids) <= VOID_REASONS
    for reason, games in result.voids.items():
        assert reason.isprintable() and len(reason) <= VOID_REASON_LENGTH and games > 0
    json.dumps(dict(result.voids))


def test_there_is_an_end_of_options():
    declared = Declarations()
    with pytest.raises(EngineFault) as caught:
        for number in range(10**6):
            declared.read_line(f"option name {number}{'x' * 60_000} type string")
    assert caught.value.reason == "flood"
    assert sum(map(len, declared.by_name)) < 2**25


LIES = b"""\
info string \x1b[2J
info depth 99999 score cp 99999999999999999999 time -1 nps nan nodes 18446744073709551615 pv e2e4
"""
WIDE = b"info depth 1 score mate -%s nodes %s\n" % (b"9" * 5000, b"9" * 5000)


@pytest.mark.parametrize("lies", [LIES, WIDE])
def test_a_match_survives_the_numbers_of_a_liar(tmp_path, lies):
    says, pgn = tmp_path / "says", tmp_path / "games.pgn"
    says.write_bytes(lies)
    done = compete(
        engine(tmp_path, "liar", moves=WINNER, says=says),
        engine(tmp_path, "two\nlines\x1b[2J", moves=LOSER),
        *("--games", 4, "--nodes", 3000, "--book", start_book(tmp_path), "--json", "--pgn", pgn),
        *("-c", 1, "--no-adjudication"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["nodes"][0] == 0 < report["nodes"][1]
    assert report["second"] == r"two\nlines\x1b[2J"
    assert all(line.isprintable() for line in (done.stdout + done.stderr).split("\n"))
    text = pgn.read_text()
    assert all(line.isprintable() for line in text.split("\n"))
    assert not any(game.errors for game in games_of(pgn))
    assert ("+990.00" if lies == LIES else "-M999") in text
