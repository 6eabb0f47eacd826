"""config.toml and params.toml: what they may say, every way to be wrong, and theta in them."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest
from golden import compare_cases

from spsa.config import load_config, missing_files, readable_params, unwritten_games
from spsa.config.source import (
    check_against_engine,
    check_against_source,
    option_places,
    read_sources,
)
from spsa.config.space import load_space, project_theta
from spsa.core.game_settings import GameSettings
from spsa.core.json_values import from_json, to_json
from spsa.core.params import Space
from spsa.core.uci_options import Declarations
from spsa.errors import InvalidInput
from worker.direct import private_url

HERE = Path(__file__).parent
FIXTURES = HERE.parent / "fixtures" / "rust"
BUILD = '[build]\nsource_path = "engine"\n'
KEYS = "value = 200\nmin = 50\nmax = 400\nstep = 20\n"
TABLE = f"[margin]\n{KEYS}"
TEXT = (HERE.parent / "fixtures" / "commented.toml").read_text(encoding="utf-8")


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes config.toml or another file of the current folder."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="config.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Path(name)

    return write


@pytest.fixture
def params(write):
    return lambda text=TEXT: write(text, "params.toml")


def faults(path, load=load_space):
    with pytest.raises(InvalidInput) as refused:
        load(path)
    assert refused.value.exit_code == 2
    return refused.value.lines


def plain(path):
    """The configuration without an environment."""
    return load_config(path, {})


def test_what_each_config_says_and_what_is_wrong_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    usual = dict(keys(read(tmp_path, {})))

    def shown(files):
        for line in told(tmp_path, files, usual if files["config.toml"] else {}):
            line = line.replace(f"{tmp_path}/crow/config.toml", "config.toml")
            yield line.replace(str(tmp_path), "/here")

    compare_cases(HERE / "config.txt", shown)


def told(tmp_path, files, usual):
    """What differs from the defaults and which files are missing, or what is wrong."""
    try:
        config = read(tmp_path, files)
    except InvalidInput as refused:
        assert refused.exit_code == 2
        yield from refused.lines
        return
    if "options" in files:
        declarations = Declarations()
        declarations.read_line(files["options"])
        space, wrong = readable_params(config.run.params)
        yield from map(str, wrong or check_against_engine(space, declarations, config))
        yield from (f"{name} stands at {at}" for name, at in option_places(config).items())
        return
    settings = config.game_settings
    assert from_json(GameSettings, json.loads(json.dumps(to_json(settings)))) == settings
    for name, value in keys(config):
        if usual.get(name, usual) != value:
            yield f"{name} = {json.dumps(value)}"
    yield from map(str, (*missing_files(config), *unwritten_games(config)))


def read(tmp_path, files):
    """The configuration of the folder `crow` with these files and a folder `engine`."""
    folder, text = tmp_path / "crow", files.get("config.toml", "")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "engine").mkdir(parents=True)
    usual = "" if "[build]" in text or "[delivery]" in text else f"\n{BUILD}"
    for name, content in {**files, "config.toml": text + usual}.items():
        (folder / name).write_text(content, encoding="utf-8")
    return load_config(folder / "config.toml", {"DATABASE_URL": files.get("DATABASE_URL", "")})


def keys(config):
    """Each key of a table with its value; what is no table has one value."""
    for name, table in config.model_dump(mode="json").items():
        for key, value in table.items() if isinstance(table, dict) else [("", table)]:
            yield f"{name}.{key}".rstrip("."), value


@pytest.mark.parametrize("key", ["[build]\nsource_path", "[games]\nbook", "[run]\nparams"])
def test_a_path_that_is_no_text_of_one_line_is_refused(write, key):
    (found,) = faults(write(f'{key} = "{"x" * 5000}"\n{"" if "build" in key else BUILD}'), plain)
    assert "at most 4096 printable characters" in found and len(found) < 300


def test_a_file_that_is_wrong_everywhere_is_refused_with_its_first_hundred_faults(write):
    found = faults(write(BUILD + "".join(f"[t{i}]\n" for i in range(10_000))), plain)
    assert len(found) == 100
    assert found[0].startswith("config.toml:3: ")


def test_master_and_worker_mean_one_database_where_config_toml_names_none(write, tmp_path):
    url = plain(write(BUILD)).database.url
    assert url == private_url(None, None) == f"sqlite:///{tmp_path}/spsa.db"


def test_what_each_space_says_and_what_is_wrong_with_it(params):
    def shown(files):
        try:
            space = load_space(params(files["params.toml"]))
        except InvalidInput as refused:
            assert refused.exit_code == 2
            return refused.lines
        if source := files.get("src/c.rs"):
            text = (FIXTURES / source).read_text("utf-8") if source.endswith(".rs") else source
            return map(str, check_against_source(space, {"src/c.rs": text}))
        written = json.loads(json.dumps(space.to_json()))
        assert Space.from_json(written) == space
        tables = zip(space.parameters, written["parameters"], strict=True)
        return [
            *(f"line {p.line}: {json.dumps(table)}" for p, table in tables),
            *map(json.dumps, written["constraints"]),
        ]

    compare_cases(HERE / "params.txt", shown)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 5000, "nested too deeply"),
        (f"{TABLE}# \0\n", "params.toml:6: is not TOML"),
        (f"\n{TABLE}# \xff\n".encode("latin-1"), "params.toml:7: is not UTF-8"),
        ("".join(f"[p{i}]\n" for i in range(5001)), "5001 parameters are too many; tune at most"),
        ("x" * 5_000_000, "it has more than 4,194,304 bytes"),
    ],
    ids=["deep", "a null", "not UTF-8", "many", "long"],
)
def test_what_is_no_file_of_a_person_is_refused_in_few_words(params, text, said):
    found = faults(params(text))
    assert said in found[0] and len(found[0]) < 500


def test_missing_files_and_folders_are_faults(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    assert "does not exist" in faults(Path("none.toml"))[0]
    assert "Is a directory" in faults(Path())[0]
    for path in ("x" * 5000, "a\0b", "loop"):
        assert "cannot be read" in faults(Path(path))[0]


def test_sources_are_read_with_their_line_ends_and_accents(tmp_path, params):
    (tmp_path / "a.rs").write_bytes(b"const A: i32 = 1; // \xe4\r\n")
    space = load_space(params(f"[a]\n{KEYS}"))
    assert read_sources(space, tmp_path, "a.rs") == {"a.rs": "const A: i32 = 1; // \xe4\r\n"}
    (tmp_path / "bad.rs").write_bytes(b"\xff\xfeA\0")
    space = load_space(params(f"[a]\n{KEYS}[b]\n{KEYS}constant = 'bad.rs::B'\n"))
    with pytest.raises(InvalidInput) as refused:
        read_sources(space, tmp_path, "none.rs")
    own, other = refused.value.lines
    assert own.startswith(f"{tmp_path}/none.rs: cannot be read: No such file")
    assert other.startswith(f"params.toml:6: [b] {tmp_path}/bad.rs cannot be read: it is not UTF-8")


@pytest.mark.timeout(60)
def test_a_long_chain_of_constraints_is_kept_in_linear_time(params):
    chain = ", ".join(f'"p{i} <= p{i + 1}"' for i in reversed(range(2999)))
    many = "".join(f"[p{i}]\n{KEYS}" for i in range(3000))
    space = load_space(params(f"constraints = [{chain}]\n{many}"))
    values = {p.name: 400 - i % 100 for i, p in enumerate(space.parameters)}
    kept = [*space.rounded(space.steps(values)).values()]
    assert kept == sorted(kept) and kept[-1] == values["p2999"]


def test_only_the_values_change_and_nothing_where_they_are_the_same(params):
    def shown(files):
        path, theta = params(), json.loads(files["theta"])
        before = path.stat().st_mtime_ns
        changed = project_theta(path, theta)
        assert changed == (path.stat().st_mtime_ns != before) == (path.read_text() != TEXT)
        assert not project_theta(path, theta), "a second time nothing changes"
        load_space(path)
        lines = zip(TEXT.splitlines(), path.read_text().splitlines(), strict=True)
        return [new for old, new in lines if old != new]

    compare_cases(HERE / "projection.txt", shown)


def test_line_ends_inline_tables_mode_and_links_survive(tmp_path):
    real, link = tmp_path / "real.toml", tmp_path / "params.toml"
    text = "# a\r\nmargin = { value = 200, min = 50, max = 400, step = 20 } # b\r\n"
    real.write_bytes(text.encode())
    real.chmod(0o640)
    link.symlink_to(real)
    assert project_theta(link, {"margin": 201.5})
    assert real.read_bytes() == text.replace("200", "201.5").encode()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, real]


def test_a_file_that_is_wrong_or_cannot_be_written_is_left_alone(params, monkeypatch):
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInput, match="does not exist"):
        project_theta(Path("none.toml"), {})
    wrong = TEXT.replace("max   = 400", "max   = 4")
    for text, said in ((wrong, "not less than max"), (TEXT, "No space left on device")):
        path = params(text)
        with pytest.raises(InvalidInput, match=said):
            project_theta(path, {"margin": 60})
        assert path.read_text() == text
        assert [one.name for one in Path().iterdir()] == [path.name]
