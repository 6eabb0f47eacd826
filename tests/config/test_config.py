"""config.toml: the seed's own shape, defaults, the environment, and every way to be wrong."""

import json
import shutil
from pathlib import Path

import pytest
from golden import compare_cases

from spsa.config import load_config, missing_files
from spsa.config.source import check_against_engine, option_places
from spsa.config.space import load_space
from spsa.core.game_settings import GameSettings
from spsa.core.uci_options import Declarations
from spsa.errors import InvalidInput
from worker.direct import database_url as worker_url

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


def test_what_each_config_says_and_what_is_wrong_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    usual = dict(keys(read(tmp_path, {})))

    def shown(files):
        for line in told(tmp_path, files, usual if files["config.toml"] else {}):
            line = line.replace(f"{tmp_path}/crow/config.toml", "config.toml")
            yield line.replace(str(tmp_path), "/here")

    compare_cases(Path(__file__).with_name("config.txt"), shown)


def told(tmp_path, files, usual):
    """What differs from the defaults and which files are missing, or what is wrong."""
    try:
        config = read(tmp_path, files)
    except InvalidInput as refused:
        assert refused.exit_code == 2
        yield from refused.lines
        return
    settings = config.game_settings
    assert GameSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings
    for name, value in keys(config):
        if usual.get(name, usual) != value:
            yield f"{name} = {json.dumps(value)}"
    yield from map(str, missing_files(config))


def read(tmp_path, files):
    """The configuration of the folder `crow` with these files and a folder `engine`."""
    folder, text = tmp_path / "crow", files.get("config.toml", "")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "engine").mkdir(parents=True)
    usual = "" if "[build]" in text or "'uci'" in text else f"\n{BUILD}"
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
