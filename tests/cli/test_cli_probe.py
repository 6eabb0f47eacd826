"""`probe` names parameters that do nothing, are clamped or crash the engine, without a game."""

import sys

import pytest
from transcripts import headings

from spsa.master.probe import Prober

ENGINE = """\
import random
import sys

OPTIONS = {"alive": 30, "strong": 30, "dead": 30, "clamped": 30, "crash": 30, "late": 30}
for line in sys.stdin:
    match line.split():
        case ["uci"]:
            for name, value in OPTIONS.items():
                print(f"option name {name} type spin default {value} min 0 max 100")
            print("uciok", flush=True)
        case ["isready"]:
            print("readyok", flush=True)
        case ["setoption", "name", name, "value", value]:
            OPTIONS[name] = int(value)
        case ["position", *rest]:
            place = sum(map(ord, line)) % 20
            played = len(rest) - rest.index("moves") - 1 if "moves" in rest else 0
            move = ("f3g1", "g8f6", "g1f3", "f6g8")[played % 4] if played else "e2e4"
        case ["go", *limits]:
            if OPTIONS["crash"] > 90:
                sys.exit(3)
            score = OPTIONS["alive"] + 4 * OPTIONS["strong"] + min(OPTIONS["clamped"], 40)
            score += random.randrange(9_000) * ("noise" in sys.argv)
            nodes = int(limits[1]) if limits[0] == "nodes" and "heedless" not in sys.argv else 50000
            score += OPTIONS["late"] * (nodes > 3_000)
            print(f"info depth 5 nodes {nodes} score cp {score}")
            print("bestmove", move if OPTIONS["strong"] <= 30 + place else "d2d4", flush=True)
        case ["quit"]:
            break
"""
PARAMS = "[{}]\nvalue = 30\nmin = 0\nmax = 100\nstep = 10\n"
UCI = '[delivery]\nengine = "engine"\n[games]\nbook = "book.epd"\n'
BLACK = ("pppppppp/8", "1ppppppp/p7", "p1pppppp/1p6", "pp1ppppp/2p5", "ppp1pppp/3p4", "ppppppp1/7p")
WHITE = ("8/PPPPPPPP", "P7/1PPPPPPP", "1P6/P1PPPPPP", "2P5/PP1PPPPP", "3P4/PPP1PPPP", "7P/PPPPPPP1")
BOOK = "".join(f"rnbqkbnr/{b}/8/8/{w}/RNBQKBNR w KQkq - 0 1\n" for b in BLACK for w in WHITE)


def _probed(self, parameter, *given, probed=Prober.probed, **named):
    if parameter.name == "ctrl_c":
        raise KeyboardInterrupt
    return probed(self, parameter, *given, **named)


@pytest.fixture(autouse=True)
def folder(folder, monkeypatch):
    monkeypatch.setattr(Prober, "probed", _probed)
    (folder / "engine.py").write_text(ENGINE)
    engine = folder / "engine"
    engine.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {folder / "engine.py"} "$@"\n')
    engine.chmod(0o755)
    (folder / "config.toml").write_text(UCI)
    (folder / "book.epd").write_text(BOOK)  # the engine's moves are legal in it
    names = ("alive", "strong", "dead", "clamped", "crash")
    (folder / "params.toml").write_text("".join(map(PARAMS.format, names)))
    return folder


@pytest.mark.parametrize("situation", headings(__file__))
def test_probe(situation, folder, transcript):
    transcript(situation)
    assert not (folder / "engines").exists(), "nothing of it is published"
    assert sorted(path.name for path in (folder / ".tuning").iterdir()) == []
