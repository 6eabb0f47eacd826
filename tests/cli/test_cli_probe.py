"""`probe` names parameters that do nothing, are clamped or crash the engine, without a game."""

import json
import sys
from pathlib import Path

import pytest

from spsa.cli import execute

ENGINE = """\
import random
import sys

OPTIONS = {"alive": 30, "strong": 30, "dead": 30, "clamped": 30, "crash": 30, "refused": 30}
for line in sys.stdin:
    match line.split():
        case ["uci"]:
            for name, value in OPTIONS.items():
                print(f"option name {name} type spin default {value} min 0 max 100")
            print("uciok", flush=True)
        case ["isready"]:
            print("readyok", flush=True)
        case ["setoption", "name", "refused", *_, value] if value != "30":
            print("info string No such option: refused")
        case ["setoption", "name", name, "value", value]:
            OPTIONS[name] = int(value)
        case ["go", *limits]:
            if OPTIONS["crash"] > 90:
                sys.exit(3)
            score = OPTIONS["alive"] + 4 * OPTIONS["strong"] + min(OPTIONS["clamped"], 40)
            if "noise" in sys.argv:
                score += random.randrange(9_000)
            print(f"info depth 1 nodes 100 score cp {score}")
            print("bestmove", "e2e4" if OPTIONS["strong"] <= 30 else "d2d4", flush=True)
        case ["quit"]:
            break
"""
NAMES = ("alive", "strong", "dead", "clamped", "crash", "refused")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("SPSA_CONFIG", raising=False)
    (tmp_path / "engine.py").write_text(ENGINE)
    engine = tmp_path / "engine"
    engine.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {tmp_path / "engine.py"} "$@"\n')
    engine.chmod(0o755)
    (tmp_path / "config.toml").write_text('[delivery]\nkind = "uci"\nengine = "engine"\n')
    (tmp_path / "params.toml").write_text(
        "".join(f"[{name}]\nvalue = 30\nmin = 0\nmax = 100\nstep = 10\n" for name in NAMES)
    )
    return tmp_path


def probed(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, object]]:
    quick = ["--nodes", "100", "--positions", "6"]
    code = execute(["probe", *quick, "--json", *arguments])
    said = capsys.readouterr()
    assert said.out, said.err
    return code, json.loads(said.out)


def test_every_parameter_is_judged(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    code, answer = probed(capsys=capsys)
    found = {one["name"]: one for one in answer["parameters"]}
    assert code == 1 and answer["reproducible"]
    assert found["alive"]["findings"] == []
    assert (found["alive"]["score_change"], found["alive"]["moves_changed"]) == (10, 0)
    assert (found["strong"]["score_change"], found["strong"]["moves_changed"]) == (40, 0.5)
    assert found["dead"]["dead"] and "no position" in found["dead"]["findings"][0]
    assert found["clamped"]["findings"] == ["clamped: max = 100 finds what 40 finds"]
    (crash,) = found["crash"]["findings"][:1]
    assert crash == "fails at max = 100: crash: exit status 3"
    assert any("No such option" in finding for finding in found["refused"]["findings"])
    # equal effect: alive and clamped change 10, strong changes 40
    assert found["strong"]["proposed_step"] < 10 <= found["alive"]["proposed_step"]
    assert found["dead"]["proposed_step"] is None
    assert sorted(path.name for path in (folder / ".tuning").iterdir()) == []


def test_plus_and_minus_alone(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = probed("--no-bounds", "--only", "crash", "--only", "alive", capsys=capsys)
    assert code == 1, "at plus and minus `crash` is only dead"
    assert [one["name"] for one in answer["parameters"]] == ["alive", "crash"]
    assert "fails" not in str(answer)
    assert probed("--only", "alive", capsys=capsys)[0] == 0


def test_an_engine_that_is_not_reproducible_is_told(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    with (folder / "config.toml").open("a") as config:
        config.write('[engine]\narguments = ["noise"]\n')
    assert execute(["probe", "--nodes", "9", "--positions", "6", "--only", "alive"]) == 0
    said = capsys.readouterr()
    assert "finds something else when asked twice" in said.err
    assert "1 parameter probed, 0 dead" in said.out


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["probe", "--only", "nothing"]) == 2
    assert "'nothing' is no active parameter" in capsys.readouterr().err
