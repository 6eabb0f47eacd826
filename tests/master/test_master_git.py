"""A run of a repository: which commit it has, and that it stays with it."""

import re
import shutil

import pytest
from console import CONFIG, ROOT, SOURCE
from repositories import Repository, git, served
from shell import Shell

from spsa.builds.git import resolve
from spsa.config import load_config
from spsa.errors import InvalidInput
from spsa.master.match_engines import named_engine
from spsa.master.start import checked_space, prepare


@pytest.fixture
def repository(project, monkeypatch):
    """The engine of the project, as version v2.1 in a repository that alone is left."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "cache"))
    (project / "engine").rename(project / "files")
    found = Repository(project)
    shutil.copytree(project / "files", found.work / "core")
    found.commit("v2.1")
    shutil.copytree(found.work, project / "checkout")
    named = f'source_path = "core"\n[engine]\nsource = "{found.address}"\nref = "v2.1"'
    config = CONFIG.replace('source_path = "engine"', named)
    (project / "config.toml").write_text(config)
    resolve.cache_clear()
    return found


def new_version(repository):
    """Move the tag to another commit, with another value."""
    constants = repository.work / "core" / "src" / "engine_constants.rs"
    constants.write_text(SOURCE.replace("MARGIN: i32 = 200", "MARGIN: i32 = 210"))
    resolve.cache_clear()
    return repository.commit("v2.1")


def prepared(project, store):
    config = load_config(project / "config.toml", {})
    return prepare(config, store, checked_space(config))


def masked(text):
    """Without addresses and hashes."""
    return re.sub(r"\w+://\S+ at v2.1 \(\w{10}\)", "-", text)


def test_a_run_keeps_its_commit_when_the_tag_moves(repository, project, project_store):
    first = git(repository.work, "rev-parse", "HEAD")
    begun = prepared(project, project_store)
    place = f"{repository.address} at v2.1 ({first[:10]})"
    assert begun.notes == (f"the source is {place}",)
    assert begun.run.settings["source"]["commit"] == first
    shell = Shell(project_store.where)
    shell("UPDATE spsa_run SET applied = 1")
    shell.close()
    second = new_version(repository)
    shutil.rmtree(project / ".tuning")
    again = prepared(project, project_store)
    moved = f"{repository.address} at v2.1 ({second[:10]})"
    assert again.notes == (
        f"the source is {place}",
        f"config.toml names {moved} now; the run goes on with {place}",
    )
    guide = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    told = "".join(f"note: {note}\n" for note in again.notes)
    assert masked(f"```\n{told}```\n") in masked(guide)
    (pinned,) = (project / ".tuning" / "pinned").iterdir()
    assert (pinned / "src" / "engine_constants.rs").read_text() == SOURCE
    assert pinned.name == begun.run.source_sha256


def test_status_and_patch_are_of_the_commit_of_the_run(repository, project, project_store, ask):
    first = git(repository.work, "rev-parse", "HEAD")
    prepared(project, project_store)
    new_version(repository)
    assert f"source: {repository.address} at v2.1 ({first[:10]})" in ask("status").out
    said = ask("status", "--json").json["source"]
    assert said == {
        "place": repository.address,
        "ref": "v2.1",
        "commit": first,
        "with_changes": False,
    }
    assert ask("report", "--html", "report.html").code == 0
    assert f"source: {repository.address} at v2.1" in (project / "report.html").read_text()
    params = project / "params.toml"
    params.write_text(params.read_text().replace("value = 200", "value = 222"))
    assert "-pub const MARGIN: i32 = 210;" in ask("params", "diff").out
    assert ask("params", "diff", "--run", "small").out == "", (
        "it starts at the values of its commit"
    )


def test_a_folder_that_git_knows_has_a_commit_too(repository, project, project_store, ask):
    (project / "config.toml").write_text(
        CONFIG.replace('"engine"', f'"{repository.work / "core"}"')
    )
    (repository.work / "core" / "src" / "engine_constants.rs").write_text(SOURCE + "\n")
    found = prepared(project, project_store)
    commit = git(repository.work, "rev-parse", "--short=10", "HEAD")
    assert f"core at {commit}, with changes" in ask("status").out
    assert found.notes == ()


def test_of_a_repository_the_folder_is_wanted_and_a_token_is_no_part_of_an_engines_name(
    repository, project, project_store, ask, monkeypatch
):
    path = project / "config.toml"
    config = load_config(path, {})
    with served(project) as server:
        address = server.replace("://", "://t0ken@") + "/engine.git"
        found = named_engine(config, project_store, config.game_settings, f"{address}@v2.1", "plus")
    assert found.name.startswith(f"{server}/engine.git at v2.1 (") and "t0ken" not in str(found)
    (project / "elsewhere").mkdir()
    monkeypatch.chdir(project / "elsewhere")
    assert ask("params", "show", "--config", path).code == 0
    path.write_text(path.read_text().replace('"core"', '"kern"'))
    with pytest.raises(InvalidInput, match=r":\d+: \[build\] .* has no folder kern; write"):
        prepared(project, project_store)


def test_init_writes_address_and_ref(repository, project, ask):
    shutil.move(repository.work / "core" / "src", repository.work)
    shutil.move(repository.work / "core" / "Cargo.toml", repository.work)
    engine = "pub const MARGIN: i32 = 200;\npub fn search(a: i32) -> i32 { a * MARGIN }\n"
    (repository.work / "src" / "main.rs").write_text(engine)
    repository.commit("v2")
    said = ask("init", f"{repository.address}@v2", "--folder", "new", "--no-try")
    assert said.code == 0, said.err
    text = (project / "new" / "config.toml").read_text()
    assert re.findall(r'^(?:source|ref|source_path) = (".*")', text, re.M) == [
        '"."',
        f'"{repository.address}"',
        '"v2"',
    ]
    assert ask("params", "show", "--config", "new/config.toml").code == 0
    inside = repository.work / "engines" / "rook"
    shutil.copytree(repository.work / "src", inside / "src")
    shutil.copy(repository.work / "Cargo.toml", inside)
    repository.commit("v3")
    named = f"{repository.address}@v3", "engines/rook"
    assert ask("init", *named, "--folder", "rook", "--no-try").code == 0
    assert 'source_path = "engines/rook"' in (project / "rook" / "config.toml").read_text()
    assert ask("params", "show", "--config", "rook/config.toml").code == 0
    for path, told in (("../x", "leads out of the repository"), ("engines/rok", "did you mean")):
        wrong = ask("init", named[0], path, "--folder", "other", "--no-try")
        assert (wrong.code, told in wrong.err) == (2, True), wrong.err
    away = ask("init", f"{repository.address}x@v3", "--folder", "other")
    assert (away.code, "cannot be read (fatal: " in away.err) == (5, True)
