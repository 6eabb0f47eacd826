"""Whatever is typed behind `spsa-master`: it is done, or one sentence says why not.

`fuzzing` says how many command lines are tried, and how a search is repeated.
"""

import os
import shutil
import time

import click
import pytest
from asking import Store
from builders import stage
from console import CONFIG, OWN, commands, write_project
from fuzzing import fuzz, made
from hypothesis import example, given

from spsa.cli import execute

SECONDS = 60.0
"""That one command may take on a busy machine."""

PARSED = frozenset({"status", "demo", "validate", "serve"})
"""Commands that take minutes or more by intention: only their arguments are read."""

LONG_PATH = "x" * 5000
TEXTS = (
    *("small", "first", "nobody", "", " ", "w1", "1", "1:2", "3:0-9", "2h", "1d", "-5m", "now"),
    *("2026-01-01", "2026-13-45", "9999-12-31T23:59:59Z", "final", "supported", "mixture,spsa"),
    *("worker", "master", "config.toml", "params.toml", "engine", "pipe", "none.toml", "."),
    *("src/engine_constants.rs", "/dev/null/none", "/dev/full", LONG_PATH, "1,2,3", "0..5"),
    *("sqlite:///spsa.db", "sqlite:///none.db", "sqlite:///engine", "postgresql://h:1/d", "x://y"),
    *(f"sqlite:///{LONG_PATH[:300]}", "sqlite:////dev/null/x.db", "builtin", "--", "-", "-h"),
)


LEAVES = commands()


def text(chance):
    """A word, and no path to a place outside the folder but known ones."""
    if chance.random() < 0.7:
        return chance.choice(TEXTS)
    return chance.text(5).replace("/", "").replace("..", "").replace("\0", "")


def value(chance, kind):
    """Mostly something of the kind that is wanted."""
    if chance.random() < 0.3:
        return text(chance)
    if isinstance(kind, click.Choice):
        return str(chance.choice([*kind.choices, "none"]))
    if isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
        return chance.number()
    return text(chance)


def arguments(chance):
    words = chance.choice([*LEAVES])
    line: list[str] = []
    for parameter in LEAVES[words].params:
        if isinstance(parameter, click.Argument):
            line += [value(chance, parameter.type) for _ in range(chance.choice((1, 1, 1, 0, 2)))]
        elif chance.random() < 0.25:
            line.append(chance.choice(parameter.opts))
            if not getattr(parameter, "is_flag", False):
                line.append(value(chance, parameter.type))
    if chance.random() < 0.05:
        line.insert(0, text(chance))
    return [*words, *line]


@pytest.fixture(scope="module")
def project(tmp_path_factory, sqlite_template):
    """A project with a run, and the present folder; without its engine nothing is played."""
    folder = tmp_path_factory.mktemp("project")
    uci = '[delivery]\nengine = "none"\n'
    write_project(folder, CONFIG.replace('[build]\nsource_path = "engine"\n', uci))
    shutil.copy(sqlite_template, folder / "spsa.db")
    with Store(f"sqlite:///{folder / 'spsa.db'}") as store:
        stage(store).whole_iteration()
    shutil.copy(folder / "spsa.db", folder / "before.db")
    os.mkfifo(folder / "pipe")
    with pytest.MonkeyPatch.context() as patch:
        for variable in OWN:
            patch.delenv(variable, raising=False)
        patch.setenv("HOME", str(folder))
        patch.chdir(folder)
        yield folder


def parsed(words):
    """The exit code that reading the arguments alone would end with; 0 if they are right."""
    path = tuple(words[:2]) if tuple(words[:2]) in LEAVES else tuple(words[:1])
    try:
        LEAVES[path].make_context("spsa-master", words[len(path) :])
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.exceptions.Exit as left:
        return left.exit_code
    return 0


@fuzz(150)
@example(words=["db", "backup", ""])
@example(words=["doctor", "--run", "\udcff"])
@example(words=["db", "backup", "\udcff"])
@example(words=["run", "--seed", str(2**63)])
@example(words=["set", "--share", "1e-320"])
@example(words=["set", "--iterations", str(2**63)])
@example(words=["probe", "--config", "."])
@given(words=made(arguments))
def test_a_command_line_is_obeyed_or_refused(project, capfd, words):
    shutil.copy(project / "before.db", project / "spsa.db")
    began = time.monotonic()
    takes_long = not PARSED.isdisjoint(words) and "\ud800" not in "".join(words)
    code = parsed(words) if takes_long else execute(words)
    assert code in (0, 1, 2, 3, 5), words
    said = capfd.readouterr()
    assert "Traceback" not in said.err and "defect of this program" not in said.err
    for line in said.err.splitlines():
        assert len(line) <= 10_000, words
    assert code in (0, 1) or said.err, words
    assert time.monotonic() - began < SECONDS, words
