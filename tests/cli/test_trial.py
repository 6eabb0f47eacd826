"""`init` builds an engine once and searches once, and mends what one plain value mends."""

import re
import signal
import tomllib
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from console import Running, master
from engines.faulty import running_with, wait_until

ENGINE = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
const int RazorMargin = 300;
int main(void) {
    char line[4096];
    while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\\n")) {
        if (!strcmp(line, "uci\\n"))
            puts("option name Threads type spin default 4 min 1 max 8\\n"
                 "option name OwnBook type check default true\\nuciok");
        if (!strcmp(line, "isready\\n"))
            puts("readyok");
        if (!strncmp(line, "go", 2)) {
            if (!NEEDS_CLOCK || strstr(line, "wtime"))
                printf("info depth 3 score cp %d nodes %d\\n", RazorMargin,
                       COUNTS && strstr(line, "nodes") ? atoi(line + 9) : 1000);
            puts("bestmove e2e4");
        }
        fflush(stdout);
    }
}
"""
FLAGS = "-DNEEDS_CLOCK=0 -DCOUNTS=1"
PLAIN = f"EXE = small\nall:\n\t$(CC) {FLAGS} -o small search.c\n"
HEEDLESS = FLAGS.replace("=1", "=0")
TARGETS = f"help:\n\t@echo try make build\nbuild:\n\tcc {HEEDLESS} -o out/testudo search.c\n"


def engine(makefile):
    (Path("small") / "out").mkdir(parents=True)
    Path("small/out/keep").touch()
    Path("small/out/old").write_bytes(b"\x7fELF" + bytes(12) + b"\x02")
    Path("small/search.c").write_text(ENGINE)
    Path("small/Makefile").write_text(makefile)


@pytest.mark.parametrize(
    ("makefile", "build", "kind", "told"),
    [
        (PLAIN, {"command": ["make"], "binary": "small"}, "movetime", ""),
        (
            f"CC = clang-99\n{PLAIN}",
            {"command": ["make", "CC=gcc", "CXX=g++"], "binary": "small"},
            "movetime",
            'trying [build] command = ["make", "CC=gcc", "CXX=g++"]',
        ),
        (
            TARGETS,
            {"command": ["make", "build"], "binary": "out/testudo"},
            "movetime",
            'trying [build] binary = "out/testudo"',
        ),
        (
            f"EXE = small\nall: config-sanity\n\tcc {HEEDLESS} -o small search.c\n"
            'config-sanity:\n\ttest "$(ARCH)" = x86-64-modern\n',
            {"command": ["make", "ARCH=x86-64-modern"], "binary": "small"},
            "movetime",
            'trying [build] command = ["make", "ARCH=x86-64-modern"]',
        ),
        (
            f"out/old: search.c\n\tcc {HEEDLESS} -o out/old search.c\n",
            {"command": ["make"], "binary": "out/old"},
            "movetime",
            'trying [build] binary = "out/old"',
        ),
        (
            PLAIN.replace("CLOCK=0", "CLOCK=1"),
            {"command": ["make"], "binary": "small"},
            "clock",
            'trying kind = "clock" in [time_control]',
        ),
    ],
    ids=[
        "as it is",
        "no such compiler",
        "help comes first",
        "an architecture",
        "an old binary",
        "clock only",
    ],
)
def test_what_the_trial_teaches_is_written(ask, folder, makefile, build, kind, told, monkeypatch):
    engine(makefile)
    clock = SimpleNamespace(monotonic=count(0, 5).__next__)
    monkeypatch.setattr("spsa.master.trial.time", clock)
    heard = ask("init", "small")
    assert heard.code == 0 and told in heard.err, heard.err
    assert "the engine plays: built in" in heard.err
    assert ('kind = "nodes" works, too' in heard.err) == (makefile.endswith(PLAIN))
    config = tomllib.loads(Path("config.toml").read_text())
    assert {key: config["build"][key] for key in build} == build
    assert config["time_control"]["kind"] == kind
    assert config["engine"]["options"] == {"Threads": 1, "OwnBook": False}
    assert Path(".tuning/build-seconds").read_text() == "10.000\n", "twice what one took"
    Path(".tuning/build-seconds").write_text("55\n")
    assert "builds take 55 s, as the last one here: measured" in ask("plan").out
    speed = float(Path(".tuning/nodes-per-second").read_text())
    assert f" {speed:,.0f} nodes a second; " in heard.err
    Path(".tuning/nodes-per-second").write_text("500\n")
    of_nodes = '[time_control]\nkind = "nodes"\nlow = 1000\n\n['
    text = re.sub(r"\[time_control\].*?\n\[", of_nodes, Path("config.toml").read_text(), flags=re.S)
    Path("config.toml").write_text(text)
    assert "200 s: 100 plies assumed, at 500 nodes a second as `init` measured" in ask("plan").out


@pytest.mark.parametrize(
    ("makefile", "code", "words", "advice"),
    [
        ("small: net.nnue\n", 4, "net.nnue", "a network that it includes is missing"),
        ("all:\n\t@echo Could not resolve host: x >&2; exit 6\n", 4, "host: x", "it downloads"),
    ],
)
def test_a_build_that_fails_ends_with_the_words_of_the_tool(
    ask, folder, makefile, code, words, advice
):
    engine(makefile)
    heard = ask("init", "small")
    assert heard.code == code and words in heard.err and advice in heard.err
    assert "Its values" not in heard.err
    assert Path("params.toml").exists(), "to go on by hand"
    assert ask("init", "small", "--force", "--no-try").code == 0


def test_a_trial_that_is_terminated_ends_its_build(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    engine("all:\n\tsleep 234.5\n")
    trial = Running(master("init", "small"), tmp_path)
    trial.until(lambda: running_with("234.5"))
    trial.send_signal(signal.SIGTERM)
    assert trial.ended() == 130
    wait_until(lambda: not running_with("234.5"), 5)
