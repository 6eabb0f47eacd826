"""`probe` names parameters that do nothing, are clamped or crash the engine, without a game."""

import sys

import pytest

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
        case ["go", *limits]:
            if OPTIONS["crash"] > 90:
                sys.exit(3)
            score = OPTIONS["alive"] + 4 * OPTIONS["strong"] + min(OPTIONS["clamped"], 40)
            if "noise" in sys.argv:
                score += random.randrange(9_000)
            nodes = int(limits[1]) if limits[0] == "nodes" and "heedless" not in sys.argv else 700
            if nodes > 3_000:
                score += OPTIONS["late"]
            print(f"info depth 5 nodes {nodes} score cp {score}")
            print("bestmove", "e2e4" if OPTIONS["strong"] <= 30 else "d2d4", flush=True)
        case ["quit"]:
            break
"""
QUICK = ("probe", "--nodes", "100")
NAMES = ("alive", "strong", "dead", "clamped", "crash")


@pytest.fixture(autouse=True)
def folder(folder):
    (folder / "engine.py").write_text(ENGINE)
    engine = folder / "engine"
    engine.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {folder / "engine.py"} "$@"\n')
    engine.chmod(0o755)
    (folder / "config.toml").write_text('[delivery]\nkind = "uci"\nengine = "engine"\n')
    (folder / "params.toml").write_text(
        "".join(f"[{name}]\nvalue = 30\nmin = 0\nmax = 100\nstep = 10\n" for name in NAMES)
    )
    return folder


def test_every_parameter_is_judged(ask, folder):
    heard = ask(*QUICK, "--json")
    found = {one["name"]: one for one in heard.json["parameters"]}
    assert heard.code == 1 and heard.json["reproducible"]
    assert found["alive"]["findings"] == []
    assert (found["alive"]["score_change"], found["alive"]["moves_changed"]) == (10, 0)
    assert (found["strong"]["score_change"], found["strong"]["moves_changed"]) == (40, 0.5)
    assert found["dead"]["dead"] and "no position" in found["dead"]["findings"][0]
    assert found["clamped"]["findings"] == ["clamped: max = 100 finds what 40 finds"]
    (crash,) = found["crash"]["findings"][:1]
    assert crash == "fails at max = 100: crash: exit status 3"
    # equal effect: alive and clamped change 10, strong changes 40
    assert found["strong"]["proposed_step"] < 10 <= found["alive"]["proposed_step"]
    assert found["dead"]["proposed_step"] is None
    assert sorted(path.name for path in (folder / ".tuning").iterdir()) == []
    assert not (folder / "engines").exists(), "nothing of it is published"


def test_an_engine_that_is_not_reproducible_is_told(ask, folder):
    with (folder / "config.toml").open("a") as config:
        config.write('[engine]\narguments = ["noise"]\n')
    said = ask("probe", "--nodes", "9", "--only", "alive")
    assert said.code == 0
    assert "finds something else when asked twice" in said.err
    assert "1 parameter probed, 0 dead" in said.out


def test_a_parameter_is_dead_if_it_is_under_every_time_control(ask, folder):
    with (folder / "params.toml").open("a") as params:
        params.write("[late]\nvalue = 30\nmin = 0\nmax = 100\nstep = 10\n")
    short, long = (f'[[time_control]]\nkind = "nodes"\nlow = {nodes}\n' for nodes in (100, 4_000))
    config = (folder / "config.toml").read_text()
    names = ("--only", "late", "--only", "dead", "--no-bounds")
    for written, dead in ((short, ["dead", "late"]), (short + long, ["dead"])):
        (folder / "config.toml").write_text(config + written)
        found = ask("probe", "--json", *names).json
        assert sorted(one["name"] for one in found["parameters"] if one["dead"]) == dead
    assert found["limit"] == "go nodes 100 and go nodes 4000"
    (late,) = (one for one in found["parameters"] if one["name"] == "late")
    assert late["score_change"] == 5, "10 in one half of the searches"
    heard = ask("probe", *names)
    assert "24 positions, each searched by go nodes 100 and go nodes 4000" in heard.out
    assert "warning" not in heard.err


@pytest.mark.parametrize("limit", [(), ("--nodes", "9")])
def test_an_engine_that_ignores_nodes_is_told(ask, folder, limit):
    names = ("--only", "alive", "--no-bounds")
    assert "each searched by go nodes" in ask("probe", *limit, *names).out
    with (folder / "config.toml").open("a") as config:
        config.write('[engine]\narguments = ["heedless"]\n')
    heard = ask("probe", *limit, *names)
    assert "each searched by go depth 5" in heard.out and heard.code == 0
    assert (
        "`go nodes` is no limit for the engine (it searches 700 nodes of 1,000, and 700 of 64,000)"
        in heard.err
    )


def test_a_group_that_changes_nothing_is_found_at_once(ask, folder):
    engine = folder / "engine.py"
    engine.write_text(ENGINE.replace("OPTIONS = {", 'OPTIONS = {"w": 30, "x": 30, "y": 30, '))
    groups = {"eval": {"w": 100, "x": 30, "y": 35}, "few": {"dead": 100, "alive": 100}}
    groups["search"] = {"clamped": 100, "strong": 100, "crash": 100}
    (folder / "params.toml").write_text(
        "".join(
            f'[{name}]\nvalue = 30\nmin = 0\nmax = {most}\nstep = 10\ngroup = "{group}"\n'
            for group, members in groups.items()
            for name, most in members.items()
        )
    )
    heard = ask(*QUICK, "--no-bounds", "--json")
    assert "the group 'eval': all 3 parameters moved at once change nothing" in heard.err
    assert heard.err.count("the group") == 1 and "1 of 5: dead" in heard.err
    found = [one["name"] for one in heard.json["parameters"] if one["dead"]]
    assert (sorted(found), heard.code) == (["crash", "dead", "w", "x", "y"], 1)
