"""config.toml: the seed's own shape, defaults, the environment, and every way to be wrong."""

import json
from pathlib import Path

import pytest

from spsa.config import load_config, missing_files
from spsa.config.source import check_against_engine, option_places
from spsa.config.space import load_space
from spsa.core.game_settings import (
    Adjudication,
    DrawRule,
    GameSettings,
    Scale,
    TablebaseRule,
    TimeControl,
    TimeKind,
)
from spsa.core.uci_options import Declarations
from spsa.errors import InvalidInput
from worker.direct import database_url as worker_url

SEED = """
[time_control]
timelow = 0.25       # seconds
timehigh = 1.0       # seconds

[games]
games_per_iteration = 150
batch_size = 10      # games per worker batch

[spsa]
max_iterations = 500
a = 1.0
c = 0.5
A = 50
alpha = 0.602
gamma = 0.101

[build]
rusty_rival_path = "../rusty-rival"
engines_path = "../chess-compete/engines"
"""

BUILD = '[build]\nsource_path = "engine"\n'


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "config.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def faults(path, **environ):
    with pytest.raises(InvalidInput) as refused:
        load_config(path, environ)
    return [str(fault).replace(str(path), "config.toml") for fault in refused.value.faults]


def test_the_configuration_of_the_seed_is_read_as_it_is(write):
    path = write(SEED)
    config = load_config(path, {})
    folder = path.parent
    assert config.game_settings.time_control == TimeControl(low=0.25, high=1.0)
    games = config.games
    assert (games.games_per_iteration, games.batch_size, games.pairs) == (150, 10, 75)
    assert (config.spsa.algorithm, config.spsa.max_iterations) == ("spsa", 500)
    assert config.spsa.settings == {"a": 1.0, "c": 0.5, "A": 50, "alpha": 0.602, "gamma": 0.101}
    assert config.build.source_path == folder.parent / "rusty-rival"
    assert config.build.engines_path == folder.parent / "chess-compete" / "engines"
    assert (config.run.name, config.run.seed) == (folder.name, None)
    assert config.run.params == folder / "params.toml"
    assert config.database.url == f"sqlite:///{folder}/spsa.db"


@pytest.mark.parametrize(
    ("rule", "algorithm"),
    [
        ("", "mixture"),
        ("gamma = 0.1\n", "spsa"),
        ("max_iterations = 9\n", "mixture"),
        ("a = 0.2\ngamma = 0.1\n", "spsa"),
        ("noise_walk = 2\n", "spsa"),
        ("algorithm = 'fishtest'\n", "fishtest"),
    ],
)
def test_the_rule_is_the_default_unless_it_is_named_or_its_gains_are(write, rule, algorithm):
    assert load_config(write(f"[spsa]\n{rule}{BUILD}"), {}).spsa.algorithm == algorithm


EVERYTHING = """
[run]
name = "margins"
seed = 7
params = "other.toml"
[time_control]
kind = "clock"
timelow = 8
timehigh = 10
increment = 0.1
margin = 0.2
[games]
games_per_iteration = 4
book = "book.epd"
plies = 12
[build]
source_path = "engine"
bench = false
distribute = "database"
flags = ["--profile", "tune"]
[engine]
options = { Hash = 16, Ponder = false, "Syzygy Path" = "/x" }
[adjudication]
draw = { move_number = 40 }
resign = false
max_moves = false
[validation]
time_control = { kind = "nodes", low = 5000 }
"""


def test_everything_can_be_said(write, tmp_path):
    (tmp_path / "book.epd").write_bytes(b"x")
    config = load_config(write(EVERYTHING), {})
    run, build, game_settings = config.run, config.build, config.game_settings
    assert (run.name, run.seed, run.params.name) == ("margins", 7, "other.toml")
    assert game_settings.time_control == TimeControl(
        kind=TimeKind.CLOCK, low=8.0, high=10.0, increment=0.1, margin=0.2
    )
    assert config.games.batch_size == 4
    book = game_settings.book
    assert (book.name, book.plies) == (str(tmp_path / "book.epd"), 12)
    assert book.sha256.startswith("2d711642b726b044")
    assert (build.bench, build.distribute) == (False, "database")
    assert build.flags == ("--profile", "tune")
    options = {"Hash": "16", "Ponder": "false", "Syzygy Path": "/x"}
    assert game_settings.engine_options == options
    assert game_settings.adjudication == Adjudication(
        draw=DrawRule(move_number=40), resign=None, max_moves=None
    )
    assert config.validation.time_control.limits == TimeControl(
        kind=TimeKind.NODES, low=5000, high=5000
    )


def test_a_binary_that_takes_options_needs_no_source(write):
    config = load_config(write('[delivery]\nkind = "uci"\nengine = "bin/e"\n'), {})
    assert config.delivery.kind == "uci"
    assert config.build.source_path is None
    missing = [fault.name for fault in missing_files(config)]
    assert missing == ["delivery"]


def test_files_that_are_not_there_are_all_named(write, tmp_path):
    text = '[games]\nbook = "none.epd"\n[engine.files]\nEvalFile = "net"\n'
    path = write(BUILD + text)
    found = [(one.line, one.name) for one in missing_files(load_config(path, {}))]
    assert found == [(2, "build"), (4, "games"), (6, "engine.files")]
    (tmp_path / "engine").mkdir()
    for name in ("none.epd", "net"):
        (tmp_path / name).touch()
    assert missing_files(load_config(path, {})) == ()


@pytest.mark.parametrize(
    ("written", "variable", "url"),
    [
        ("sqlite:///a/b.db", "", "sqlite:///{folder}/a/b.db"),
        ("sqlite:////a/b.db", "", "sqlite:////a/b.db"),
        ("postgresql://u:p%40@h:1/d", "", "postgresql://u:p%40@h:1/d"),
        ("sqlite:///b.db", "postgres://h/d", "postgres://h/d"),
        ("postgresql://h/d", "sqlite:///c.db", "sqlite:///{cwd}/c.db"),
    ],
)
def test_the_database_has_one_name_wherever_a_program_starts(write, written, variable, url):
    path = write(f'[database]\nurl = "{written}"\n{BUILD}')
    config = load_config(path, {"DATABASE_URL": variable})
    assert config.database.url == url.format(folder=path.parent, cwd=Path.cwd())


@pytest.mark.parametrize(
    "url", ["mysql://u:secret@h/d", "sqlite://", "sqlite:///:memory:", "x", ""]
)
def test_a_database_that_cannot_be_used_is_refused_without_quoting_it(write, url):
    path = write(f'[database]\nurl = "{url}"\n{BUILD}')
    (found,) = faults(path)
    assert found.startswith("config.toml:2: [database] url ") and "sqlite:///" in found
    assert "secret" not in found
    if url:
        (found,) = faults(write(BUILD), DATABASE_URL=url)
        assert found.startswith("DATABASE_URL: [database.url] ")


MAKE = '[build] / source_path = "a" / command = ["make"]'
FOUR = "[games] / games_per_iteration = 4"
TC = '[[time_control]] / kind = "nodes"'
TWO = 'where = "worker" / levels = ["x86-64-v2", "x86-64"]'
# lines of config.toml, and what is said of them
FAULTS = r"""
[games] / batch_size = 7 -> config.toml:2: [games] batch_size = 7 is odd
[games] / batch_size = 2.0 -> batch_size = 2.0 is refused; it has to be a valid integer
[games] / batch_size = 200 -> batch_size 200 is more than games_per_iteration 150
[games] / iterations_in_flight = 0 -> it has to be greater than or equal to 1, or "auto"
[games] / iterations_in_flight = 'x' -> is refused; it has to be a valid integer, or "auto"
[games] / book = '' -> names no file
[games] / chess960 = true -> the built-in books have no positions of Chess960; name a
[games] / target_nps = 5 / [time_control] / kind = 'nodes' / low = 5 -> toml:2: [games] target_nps
[time_control] / timelow = 2 / timehigh = 1 -> timelow 2 is more than timehigh 1; exchange
[time_control] / timehigh = inf -> timehigh = inf is refused; it has to be a finite number
[time_control] / kind = 'blitz' / low = 5 -> it has to be "movetime", "clock", "nodes" or "depth"
[time_control] / kind = 'nodes' -> low is missing
[time_control] / kind = 'nodes' / low = 9 / high = 8 -> low 9 is more than high 8
[time_control] / kind = 'depth' / low = 1001 -> low = 1001 is too large; use at most 1000
[time_control] / kind = 'clock' / timelow = 3 / high = 3 -> it needs kind = "nodes" or "depth"
time_control = [] -> there are 0 time controls; write at least one table
time_control = [5] -> [time_control] time_control = [5] is not a table
FOUR / TC / low = 1 / TC -> config.toml:6: [time_control] low is missing; give
FOUR / TC / low = 1 / TC / low = 2 / sahre = 1 -> toml:9: [time_control] unknown key 'sahre'; did
FOUR / TC / low = 1 / TC / low = 0 -> config.toml:8: [time_control] low = 0 is refused
FOUR / TC / low = 1 / TC / low = 1 -> config.toml:6: [time_control] nodes=1 is there twice
FOUR / TC / low = 1 / weight = 2 / TC / low = 2 -> toml:7: [time_control] weight is missing
FOUR / TC / low = 1 / TC / low = 2 / share = 2 -> 2: [games] games_per_iteration = 4 cannot
FOUR / TC / low = 1 / TC / low = 2 / share = 2 -> whole pairs; use a multiple of 6
TC / [time_control] -> toml:3: [config.toml] line 1 has [[time_control]], and line 3 [time_control];
[ time_control ] / TC -> and line 2 [[time_control]]; write [[time_control]] in both lines
[games] / [spsa] / [games] -> 3: [config.toml] line 1 has [games], and line 3 [games]; write all its
TC / low = 1 / share = 0.7001 / TC / low = 2 / share = 0.123457 -> multiple of 1334162 in
TC / low = 1 / share = 0.3333 / TC / low = 2 / share = 0.12345 -> or other shares, as 1 and 2
[games] / target_nps = 5 / games_per_iteration = 4 / TC / low = 1 / TC / low = 2 -> these games need
[validation] / time_control = { kind = "depth", low = 5, share = 2 } -> unknown key 'share'
[spsa] / gama = 0.1 -> config.toml:2: [spsa] gama
[spsa] / max_iteration = 5 -> did you mean "max_iterations"?
[spsa] / algorithm = 'sgd' -> [spsa] algorithm
[spsa] / c = nan -> [spsa] c
[spsa] / algorithm = 'mixture' / a = 0.2 -> config.toml:3: [spsa] a
[run] / sede = 1 -> unknown key 'sede'; did you mean "seed"?
[run] / name = "a\u001b[2J" -> printable characters on one line
[run] / params = '~no such user/params.toml' -> is in no user's home
[gmaes] -> config.toml:1: [gmaes] unknown key 'gmaes'; did you mean "games"?
games = 5 -> config.toml:1: [games] games = 5 is not a table
[engine.options] / Hash = [16] -> Hash = [16] is not a text
[engine.options] / Hash = "1\nquit" -> printable characters on one line
[engine.options] / "a\nb" = 1 -> printable characters on one line
[engine.options] / UCI_Chess960 = true -> UCI_Chess960 follows chess960 of [games]
[engine.files] / N = 'x' / [engine.options] / N = 1 -> 2: [engine.files] N is in [engine.o
[adjudication] / draw = true -> [adjudication] draw = true is not a table
[adjudication] / draw = { scroe = 1 } -> toml:2: [adjudication.draw] unknown key
[adjudication.syzygy] / pieces = 8 -> toml:2: [adjudication.syzygy] pieces = 8 is
[adjudication.syzygy] / fifty_moves = true -> [adjudication.syzygy] pieces is missing
[validation] / share = 0.5 -> share is of validations in the background; add every
[delivery] / kind = 'uci' -> [delivery] engine is missing
[delivery] / engine = 'x' -> engine does not go with kind = "build"
[delivery] / kind = "uci" / engine = "e" / [build] / where = "worker" -> remove where
[delivery] / kind = "uci" / engine = "e" / command = ["x"] -> it needs kind = "command"
[delivery] / kind = "command" / command = ["x"] / [build] / source_path = "x" -> name the binary
[delivery] / kind = "command" / engine = "e" / [build] / source_path = "x" -> write command = [
[delivery] / kind = "command" / engine = "e" / command = ["x"] / [build] -> source_path is missing
[build] -> [build] source_path is missing
[engine] / source = "https://u:s3cret@h/x" -> toml:2: [engine] the address holds a password; leave
[engine] / source = "ext::sh -c x" -> [engine] the address is none of a repository; write https:
[engine] / source = "https://h/x" / ref = "a..b" -> toml:3: [engine] ref = "a..b" is no name of a
[engine] / ref = "v1" -> toml:2: [engine] ref is given without source; name the address
[engine] / source = "https://h/x" / [build] / source_path = "../a" -> toml:4: [build] source_path le
[engine] / source = "https://h/x" / [delivery] / kind = 'uci' / engine = "e" -> remove source
[build] / source_path = "a" / rusty_rival_path = "b" -> unknown key 'rusty_rival_path'
[build] / source_path = "a" / constants_file = "../x.rs" -> is no file of Rust, C or C++
MAKE -> command is given without binary
MAKE / binary = "../x" -> not a path inside the source
MAKE / binary = "x" / flags = [] -> remove flags
MAKE / binary = "x" / TWO -> several levels and no {level} in command
[build] / source_path = "a" / bench = false / TWO -> are compared by bench
[build] / source_path = "a" / levels = ["x86-64", "x86-64-v2"] -> a master builds for one
[build] / source_path = "a" / levels = ["v3"] -> it has to be "x86-64", "x86-64-v2"
[build] / source_path = "a" / flags = "x" -> flags = "x" is not a list of texts
[build] / source_path = "a" / flags = ["x", 5] -> is not a list of texts
[build] / source_path = "a" / where = "cloud" -> it has to be "master" or "worker"
[build] / source_path = "a" / where = "worker" / distribute = "path" -> remove distribute, or where
"""


@pytest.mark.parametrize("case", FAULTS.strip().splitlines())
def test_what_is_wrong_is_said_with_line_section_and_remedy(write, case):
    lines, said = case.split(" -> ")
    for name, written in {"MAKE": MAKE, "TWO": TWO, "FOUR": FOUR, "TC": TC}.items():
        lines = lines.replace(name, written)
    build = "" if "[build]" in lines or "'uci'" in lines else BUILD
    (found,) = faults(write("\n".join((*lines.split(" / "), build))))
    assert said in found


@pytest.mark.parametrize(
    ("share", "games"), [(1, 152), (4, 150), (0.5, 150), (1.5, 150), (0.3333, 26_666)]
)
def test_a_default_of_games_is_rounded_up_to_what_shares_divide(write, share, games):
    text = '[[time_control]]\nkind = "nodes"\nlow = {}\n'
    path = write(text.format(1) + text.format(2) + f"share = {share}\n{BUILD}")
    assert load_config(path, {}).games.games_per_iteration == games


def test_games_of_chess960_by_the_speed_of_a_machine_with_tables(write):
    text = (
        "[games]\nbook = 'frc.epd'\nchess960 = true\ntarget_nps = 900_000\n"
        "[adjudication.syzygy]\npieces = 5\nfolder = 'tables'\nfifty_moves = false\n"
    )
    path = write(text + BUILD)
    game_settings = load_config(path, {}).game_settings
    assert game_settings.book.chess960 and game_settings.engine_options == {"UCI_Chess960": "true"}
    assert game_settings.scale == Scale(target_nps=900_000)
    folder = str(path.parent / "tables")
    assert game_settings.adjudication.syzygy == TablebaseRule(
        pieces=5, fifty_moves=False, folder=folder
    )
    assert GameSettings.from_json(json.loads(json.dumps(game_settings.to_json()))) == game_settings


def test_what_workers_build_they_get_from_the_database(write):
    build = load_config(write(f'{BUILD}where = "worker"\n'), {}).build
    assert (build.where, build.distribute) == ("worker", "database")


@pytest.mark.parametrize(
    "keys",
    [
        'levels = ["x86-64-v3", "x86-64", "x86-64-v3"]',
        'command = ["make", "A={level}"]\nbinary = "x"\nlevels = ["x86-64-v3", "x86-64"]',
    ],
)
def test_levels_ascend(write, keys):
    where = '[build]\nsource_path = "a"\nwhere = "worker"'
    build = load_config(write(f"{where}\n{keys}\n"), {}).build
    assert build.levels == ("x86-64", "x86-64-v3")


def test_a_run_requires_words(write):
    text = '[build]\nsource_path = "a"\n[fleet]\nrequire = '
    fleet = load_config(write(text + '["fast", "a.1"]\n'), {}).fleet
    assert fleet.require == ("fast", "a.1")
    for word in ("", "Fast", "a_b", "a b", "x" * 41, "%"):
        assert "is not a word" in faults(write(f'{text}["{word}"]\n'))[0]
    many = ", ".join(f'"w{n}"' for n in range(51))
    assert "at most 50 items" in faults(write(f"{text}[{many}]\n"))[0]


def test_all_faults_are_told_in_one_go_in_the_order_of_the_file(write):
    text = (
        "[games]\nbatch_size = 200\nbok = 1\n[time_control]\ntimelow = 9\n"
        "timehigh = 3\n[spsa]\nmax_iterations = -1\n[oops]\n[build]\n"
    )
    assert [fault.split("[")[0] for fault in faults(write(text))] == [
        f"config.toml:{line}: " for line in (3, 5, 8, 9, 10)
    ]  # and what is wrong between the keys of [games] once each is right by itself


@pytest.mark.parametrize("key", ["[build]\nsource_path", "[games]\nbook", "[run]\nparams"])
def test_a_path_that_is_no_text_of_one_line_is_refused(write, key):
    build = "" if "build" in key else BUILD
    (found,) = faults(write(f'{key} = "{"x" * 5000}"\n{build}'))
    assert "at most 4096 printable characters" in found and len(found) < 300


def test_a_file_that_is_wrong_everywhere_is_refused_with_its_first_hundred_faults(write):
    found = faults(write(BUILD + "".join(f"[t{i}]\n" for i in range(10_000))))
    assert len(found) == 100
    assert found[0].startswith("config.toml:3: ")


def test_master_and_worker_mean_one_database_where_config_toml_names_none(write, monkeypatch):
    path = write(BUILD)
    monkeypatch.chdir(path.parent)
    url = load_config(path, {}).database.url
    assert url == worker_url(None, {}) == f"sqlite:///{path.parent}/spsa.db"


def test_what_an_engine_does_not_accept_is_told_where_it_is_written(write, tmp_path):
    (tmp_path / "params.toml").write_text("[a]\nvalue = 5\nmin = 0\nmax = 9\nstep = 1\n")
    text = '[delivery]\nkind = "uci"\nengine = "e"\n[games]\nbook = "frc.epd"\nchess960 = true\n'
    path = write(text + '[engine.options]\nHash = 1\n[engine.files]\nNet = "n"\n')
    declarations = Declarations()
    declarations.read_line("option name A type spin default 5 min 0 max 8")
    config = load_config(path, {})
    told = check_against_engine(load_space(config.run.params), declarations, config)
    assert [(fault.line, fault.name) for fault in told] == [
        (6, "games"), (8, "engine.options"), (10, "engine.files"), (1, "a")
    ]  # fmt: skip
    assert option_places(config) == {"Hash": f"{path}:8: [engine.options]"}
