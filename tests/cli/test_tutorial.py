"""docs/tutorial.md shows what the commands say today; `make tutorial` writes it anew."""

import re

import pytest
from builders import space_from, stage
from console import ROOT, call, master
from golden import compare
from tutorial import TUTORIAL, blocks, prepare, transcripts, walked

SHOWN = dict(transcripts())
pytestmark = pytest.mark.slow


def masked(text):
    """The words of each line of a plan, every figure as `#`."""
    return [re.sub(r"[+-]?\d[\d,.]*", "#", line).split() for line in text.strip().splitlines()]


def test_what_it_shows_before_the_run_is_what_the_commands_say(tmp_path):
    said = prepare(tmp_path)
    assert len(said) == 3
    for command, told in said.items():
        same = masked if " plan" in command else str.strip
        assert same(told) == same(SHOWN[command])


def test_init_suggests_as_many_parameters_as_it_shows(tmp_path):
    done = call(master("init", ROOT / "engine", "--no-try"), tmp_path)
    assert done.stdout == SHOWN["spsa-master init ../my-engine"]


def test_what_it_shows_of_the_run_has_the_form_of_today(project_store, tmp_path):
    staged = stage(project_store, space_from(blocks("toml")[0]), 20, games=24, name="tuning")
    project_store.finish(staged.master)
    staged.validate(games=100)
    staged.validate(games=200)
    done = call(master("status", "--database-url", project_store.where), tmp_path)
    assert form(SHOWN["spsa-master status"]) == form(done.stdout)


@pytest.mark.timeout(900)
def test_its_walks_say_what_it_shows(tmp_path):
    prepare(tmp_path)
    (tmp_path / "tuning" / "tuned.patch").write_text(SHOWN["cat tuned.patch"])
    compare(TUTORIAL, walked(tmp_path))


def form(text):
    """What each line is about, and the headings of tables; no alarms, workers, or git's commit."""
    parts = re.split(r"^workers *$", text, flags=re.MULTILINE)[0].splitlines()
    labels = [found[1] for line in parts if (found := re.match(r"  ([a-z ]+):", line))]
    heads = [" ".join(line.split()) for line in parts if line.startswith(("name ", "number "))]
    return [*(one for one in labels if one not in ("alarm", "source")), *heads]
