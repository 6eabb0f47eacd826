"""From files to a run: which rule it gets, and what its owner is told before anything is played."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from asking import Store
from builders import play
from console import CONFIG, ROOT, SOURCE, write_project
from masters import SPACE, FakeSleep, FixedDelivery, Watched
from repositories import Repository, git, served
from stories import Story
from transcripts import headings

from spsa.builds.git import resolve
from spsa.config import load_config
from spsa.errors import IllegalTransition, InvalidInput, TuningError
from spsa.history.doctor import check_run
from spsa.master import delivery_setup, start
from spsa.master.loop import Master
from spsa.master.match_engines import named_engine
from spsa.master.session import RunSettings, tuning_of
from spsa.master.start import Origin, checked_space
from spsa.report.status import STATUS, status
from spsa.report.table import record


@pytest.fixture
def store(project_store):
    return project_store


class Starting(Story):
    """What a master does with the files of the project, before it opens anything."""

    def __init__(self, *given) -> None:
        super().__init__(*given)
        self.prepared: dict[str, start.Prepared] = {}

    def edit(self, file, old, new) -> None:
        path, old, new = Path(file), old.replace("\\n", "\n"), new.replace("\\n", "\n")
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def prepare(self, *words, at=0, same=False, learned=False, **over):
        """The run of this name, or of config.toml, `from` another, and what its owner is told.

        And after which results theta of the other one was the same, to the bit.
        """
        steps = []
        if "from" in over:
            run = self.store.run(over["from"])
            origin = Origin(run=run, k=at, same_engine=bool(same), learned_steps=bool(learned))
            over, steps = {"origin": origin}, self.store.steps(run.id)
        found = prepare(load_config(Path("config.toml"), {}), self.store, *words, **over)
        self.prepared[found.run.name] = found
        theta = ", ".join(f"{name} {value:.6g}" for name, value in found.run.theta.items())
        same = "".join(f", as k={one.k}" for one in steps if one.theta_after == found.run.theta)
        return (f"{found.run.name}, {found.run.algorithm}: {theta}{same}", *found.notes)

    def begin(self, name) -> None:
        """Let the run have a result, so that it is not started anew."""
        self._shell("UPDATE spsa_run SET applied = 1 WHERE name = :name", name=name)

    def leave(self, name) -> None:
        """As a master does that has opened nothing."""
        self.lead(name)
        self.store.release_master_lease(self._masters[name])

    def delivery(self, name):
        found, config = self.prepared[name], load_config(Path("config.toml"), {})
        delivery_setup.delivery_of(config, tuning_of(found.run).space, found.run)

    def tune(self, name) -> str:
        """Play a prepared run to its end, with engines that are only named."""
        found = self.prepared[name]
        self.lead(name)
        master = Master(
            store=self.store,
            master_lease=self._masters[name],
            tuning=tuning_of(found.run),
            settings=RunSettings.of(found.run),
            delivery=FixedDelivery(),
            watcher=Watched(),
            project=lambda _theta: None,
            stopping=FakeSleep(lambda: play(self.store)),
        )
        status = master.run()
        self.store.release_master_lease(self._masters[name])
        return status

    def says(self, name, word):
        shown = status(self.store, self.store.run(name))
        yield from (line for line in shown.sentences() if word in line)
        yield str(record(STATUS, shown)["origin"])

    def move(self, tag) -> None:
        """To the last commit; what git has told of it is asked again."""
        resolve.cache_clear()
        git(self.repository.work, "tag", "-f", "-a", tag, "-m", tag)
        git(self.repository.work, "push", "-q", "-f", "--tags", "origin")

    def commit(self, tag) -> None:
        self.repository.commit(tag)

    def doctor(self, name):
        run = self.store.run(name)
        return check_run(self.store, run, tuning_of(run))


def prepare(config, store, name=None, origin=None, **over):
    over |= {} if name is None else {"name": name}
    config = config.model_copy(update={"run": config.run.model_copy(update=over)})
    return start.prepare(config, store, checked_space(config), origin)


STORY = Starting
OF_GIT = [one for one in headings(__file__) if one.startswith("of a repository: ")]


@pytest.mark.parametrize("heading", sorted({*headings(__file__)} - {*OF_GIT}))
@pytest.mark.usefixtures("project")
def test_what_an_owner_is_told_of_a_run(heading, told):
    told(heading, true=Path("/bin/true").resolve())


@pytest.fixture
def repository(project, project_story, monkeypatch):
    """The engine of the project, as version v2.1 in a repository that alone is left.

    Another commit follows, with another value and a change that is not committed.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "cache"))
    (project / "engine").rename(project / "files")
    found = project_story.repository = Repository(project)
    shutil.copytree(project / "files", found.work / "core")
    named = f'source_path = "core"\n[engine]\nsource = "{found.address}@v2.1"'
    (project / "config.toml").write_text(CONFIG.replace('source_path = "engine"', named))
    found.first = found.commit("v2.1")
    constants = found.work / "core" / "src" / "engine_constants.rs"
    constants.write_text(SOURCE.replace("MARGIN: i32 = 200", "MARGIN: i32 = 210"))
    found.second = found.commit()
    constants.write_text(SOURCE + "\n")
    return found


@pytest.mark.parametrize("heading", OF_GIT)
def test_what_an_owner_is_told_of_a_commit(heading, repository, told):
    both = {"commit": repository.first, "at": repository.first[:10], "new": repository.second[:10]}
    said = told(heading, address=repository.address, **both)
    if heading == OF_GIT[0]:
        notes = "".join(f"note: {line}\n" for line in said[5].out.splitlines()[1:])
        guide = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
        assert masked(f"```\n{notes}```\n") in masked(guide)


def masked(text):
    """Without addresses and hashes."""
    return re.sub(r"\w+://\S+ at v2.1 \(\w{10}\)", "-", text)


def test_a_token_is_no_part_of_an_engines_name_and_no_folder_is_wanted(
    repository, project, store, ask, monkeypatch
):
    config = load_config(project / "config.toml", {})
    with served(project) as server:
        address = server.replace("://", "://t0ken@") + "/engine.git"
        found = named_engine(config, store, config.game_settings, f"{address}@v2.1", "plus")
    assert found.name.startswith(f"{server}/engine.git at v2.1 (") and "t0ken" not in str(found)
    (project / "elsewhere").mkdir()
    monkeypatch.chdir(project / "elsewhere")
    assert ask("params", "show", "--config", project / "config.toml").code == 0


def test_a_run_that_somebody_else_has_created_meanwhile_goes_on(project, store, monkeypatch):
    """Where nobody has, the refusal is told."""

    def refused(*_, **__):
        raise IllegalTransition("it has begun")

    def prepared():
        return prepare(load_config(project / "config.toml", {}), store)

    monkeypatch.setattr(Store, "create_run", refused)
    with pytest.raises(IllegalTransition, match="it has begun"):
        prepared()
    monkeypatch.undo()
    created = prepared().run
    monkeypatch.setattr(Store, "create_run", refused)
    assert prepared().run.id == created.id


@pytest.mark.parametrize("key", ["distribute='path'", "distribute='database'", "where='worker'"])
def test_a_new_run_shares_its_book_as_it_shares_its_engines(key, project, store):
    (project / "mine.epd").write_text("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -\n")
    rules = CONFIG.replace("batch_size = 2", 'batch_size = 2\nbook = "mine.epd"')
    write_project(project, rules.replace("[build]", f"[build]\n{key}"))
    config = load_config(project / "config.toml", {})
    prepared = prepare(config, store)
    book, is_shared = prepared.run.game_settings.book, prepared.delivery.keep_bytes
    (project / "mine.epd").write_text("changed since it was read")
    with pytest.raises(TuningError, match=r"mine\.epd hashes to"):
        delivery_setup.shared_files(config)
    shared = config.build.engines_path / book.sha256
    assert shared.exists() == ("path" in key) != is_shared
    content = shared.read_bytes() if "path" in key else store.file(book.sha256)
    assert content is not None and content.startswith(b"rnbqkbnr")


def test_a_binary_is_searched_with_once_for_each_run(project, project_story):
    script = Path(__file__).parents[1] / "support" / "engines" / "optional.py"
    (project / "script").write_text(
        f"#!/bin/sh\n[ $# = 0 ] && tee -a {project}/asked | {sys.executable} {script}\n"
    )
    (project / "script").chmod(0o755)
    uci = '[delivery]\nengine = "script"\n'
    options = '[boldness]\nvalue = 3\nmin = 0\nmax = 50\nstep = 5\noption = "boldness"\n'
    text = CONFIG.replace('[build]\nsource_path = "engine"\n', uci).replace(
        "Hash = 1", "patience = 9"
    )
    write_project(project, text, options)

    def asked(name):
        (project / "asked").write_text("")
        project_story.prepare(name)
        project_story.begin(name)
        words = (project / "asked").read_text()
        return words.count("uci\n"), "patience value 9\nisready\nucinewgame" in words, "go" in words

    told = [(2, True, True), (1, False, False), (2, True, True)]
    assert [asked(name) for name in ("one", "one", "two")] == told


LOWER = "pub const margin: i32 = 50;\npub const ratio: f64 = 0.3;\npub const still: i32 = 50;\n"
WHERE = "[build]\nwhere = 'worker'"


@pytest.mark.parametrize(("where", "store"), [("[build]", object()), (WHERE, None)])
def test_this_machine_needs_one_of_the_levels(where, store, tmp_path, monkeypatch):
    write_project(tmp_path, CONFIG.replace("[build]", f"{where}\nlevels = ['x86-64-v3']"))
    config = load_config(tmp_path / "config.toml", {})
    monkeypatch.setattr(delivery_setup, "provided", lambda: ("linux", "x86-64", "x86-64-v2"))
    with pytest.raises(InvalidInput, match=r":\d+: \[build\] .* only linux, x86-64, x86-64-v2"):
        delivery_setup.delivery_of(config, SPACE, store=store)
    assert not (tmp_path / ".tuning").exists()


def test_where_workers_build_a_probe_builds_the_highest_level_of_this_machine(
    tmp_path, monkeypatch
):
    levels = "levels = ['x86-64', 'x86-64-v2', 'x86-64-v3']"
    write_project(tmp_path, CONFIG.replace("[build]", f"{WHERE}\n{levels}"))
    (tmp_path / "engine/src/engine_constants.rs").write_text(LOWER)
    config = load_config(tmp_path / "config.toml", {})
    monkeypatch.setattr(delivery_setup, "provided", lambda: ("linux", "x86-64", "x86-64-v2"))
    made = []
    monkeypatch.setattr(delivery_setup, "Builder", lambda _, recipe, *__: made.append(recipe))
    with delivery_setup.temporary_delivery(config, SPACE):
        assert [(recipe.level, recipe.options) for recipe in made] == [("x86-64-v2", {"Hash": "1"})]
    recipes = delivery_setup.delivery_of(config, SPACE, store=object())[0].recipes.values()
    assert [one.bench for one in (*made, *recipes)] == [None, True, True, True, True]


@pytest.mark.parametrize(("cores", "builds"), [(1, 1), (11, 2), (999, 8)])
def test_builds_share_the_cores(cores, builds, monkeypatch):
    monkeypatch.setattr(delivery_setup.system, "logical_cores", lambda: set(range(cores)))
    assert delivery_setup.usual_builds() == builds
