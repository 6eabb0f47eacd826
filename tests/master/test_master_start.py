"""From files to a run: which rule it gets, and what its owner is told before anything is played."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from asking import Store
from builders import play, stage
from console import CONFIG, PARAMS, write_project
from masters import SPACE, FakeSleep, FixedDelivery, Watched
from shell import Shell

from spsa.cli import execute
from spsa.config import load_config
from spsa.errors import IllegalTransition, InvalidInput, NothingToDo, TuningError, UnusableState
from spsa.history.doctor import check_run
from spsa.lifecycle import RunStatus
from spsa.master import delivery_setup, start
from spsa.master.loop import Master
from spsa.master.session import tuning_of
from spsa.master.start import Origin, checked_space
from spsa.report.status import STATUS, status
from spsa.report.table import record


@pytest.fixture
def store(project_store):
    return project_store


def prepare(config, store, *words, **over):
    return start.prepare(config, store, checked_space(config), *words, **over)


def prepared(folder, store, *, iterations, in_flight, rule):
    config = CONFIG.replace("max_iterations = 4", f"max_iterations = {iterations}\n{rule}")
    config = config.replace("batch_size = 2", f"batch_size = 2\niterations_in_flight = {in_flight}")
    write_project(folder, config)
    return prepare(load_config(folder / "config.toml", {}), store)


def opened(store, found):
    """Let the run have a result, so that it is not started anew."""
    altered(store, "UPDATE spsa_run SET applied = 1 WHERE id = :id", id=found.run.id)


def altered(store, statement, **values):
    shell = Shell(store.where)
    shell(statement, **values)
    shell.close()


def test_a_book_with_faults_begins_no_run(project, store):
    (project / "b.epd").write_text("no position\n")
    write_project(project, CONFIG.replace("[games]", '[games]\nbook = "b.epd"', 1))
    with pytest.raises(InvalidInput, match=r"b\.epd:1: \[opening\] expected 'w' or 'b'"):
        prepare(load_config(project / "config.toml", {}), store)
    assert store.find_run("small") is None


def test_an_engine_that_is_none_is_refused_in_its_line(project):
    uci = '[delivery]\nkind = "uci"\nengine = "/bin/true"\n'
    write_project(project, CONFIG + uci)
    with pytest.raises(InvalidInput, match=r"config\.toml:\d+: \[delivery\].*true: .* speaks UCI"):
        checked_space(load_config(project / "config.toml", {}))


@pytest.mark.parametrize(
    ("params", "note"),
    [
        (
            'constraints = ["margin <= depth"]\n' + PARAMS.replace("min = 50", "min = 4"),
            "params.toml: margin <= depth does not hold: "
            "the start is played with margin 200 as 4 and depth 3 as 4",
        ),
        (
            PARAMS.replace("value = 200", "value = 210"),
            "starts elsewhere than the source, whose values follow: margin at 210 (200)",
        ),
    ],
)
def test_a_start_that_breaks_a_constraint_or_is_not_the_sources_is_told(
    params, note, project, store
):
    write_project(project, params=params)
    told, *_ = prepare(load_config(project / "config.toml", {}), store).notes
    assert told == note


def test_a_run_that_somebody_else_has_created_meanwhile_goes_on(project, store, monkeypatch):
    """Where nobody has, the refusal is told."""

    def refused(*_, **__):
        raise IllegalTransition("it has begun")

    monkeypatch.setattr(Store, "create_run", refused)
    with pytest.raises(IllegalTransition, match="it has begun"):
        prepared(project, store, iterations=9, in_flight=1, rule="")
    monkeypatch.undo()
    created = prepared(project, store, iterations=9, in_flight=1, rule="").run
    monkeypatch.setattr(Store, "create_run", refused)
    assert prepared(project, store, iterations=9, in_flight=1, rule="").run.id == created.id


def test_a_run_has_the_rule_of_its_configuration_keeps_it_and_says_what_the_file_has_now(
    project, store
):
    first = prepared(project, store, iterations=99, in_flight=1, rule="").run
    assert first.algorithm == "mixture"
    master = store.acquire_master_lease(first.id, "a master that left it unbegun", 30)
    store.release_master_lease(master)
    before = prepared(project, store, iterations=99, in_flight=1, rule="a = 0.1")
    assert before.run.algorithm == before.tuning.observed.rule.name == "spsa"
    opened(store, before)
    after = prepared(project, store, iterations=98, in_flight=2, rule="")
    assert after.run.algorithm == after.tuning.observed.rule.name == "spsa"
    assert after.notes[:-1] == (
        "config.toml: algorithm: the run has spsa, the files say mixture",
        "config.toml: iterations_in_flight: the run has 1, the files say 2",
        "config.toml: max_iterations: the run has 99, the files say 98",
        "config.toml: rule.a: the run has 0.1, the files say none",
    )


def test_other_time_controls_of_the_files_are_named(project, store):
    one = '[time_control]\nkind = "nodes"\nlow = 150\n'
    two = f"[{one}".replace("]", "]]") + f"share = 3\n[{one}".replace("]", "]]").replace("5", "6")

    def notes(controls):
        write_project(project, CONFIG.replace(one, controls))
        found = prepare(load_config(project / "config.toml", {}), store)
        opened(store, found)
        return found.notes

    assert notes(two) == ()
    (said, *_) = notes(two.replace("share = 3", "share = 1"))
    assert said == (
        "config.toml: time_controls: the run has nodes=150, share 3 and nodes=160, share 1, "
        "the files say nodes=150, share 1 and nodes=160, share 1"
    )
    (said, *_) = notes(one)
    assert said.endswith("nodes=160, share 1, the files say none")


def test_a_run_of_an_unknown_rule_is_said(project, store, capsys):
    found = prepared(project, store, iterations=9, in_flight=1, rule="")
    opened(store, found)
    altered(store, "UPDATE spsa_run SET algorithm = 'mixtures'")
    with pytest.raises(UnusableState, match='did you mean "mixture"'):
        tuning_of(store.run())
    assert execute(["doctor", "--config", str(project / "config.toml")]) == 2
    assert "another version of this program started run small" in capsys.readouterr().err


@pytest.mark.parametrize("distribute", ["path", "database"])
def test_a_new_run_shares_its_book_as_it_shares_its_engines(distribute, project, store):
    (project / "mine.epd").write_text("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -\n")
    rules = CONFIG.replace("batch_size = 2", 'batch_size = 2\nbook = "mine.epd"')
    write_project(project, rules.replace("[build]", f'[build]\ndistribute = "{distribute}"'))
    config = load_config(project / "config.toml", {})
    book = prepare(config, store).run.game_settings.book
    (project / "mine.epd").write_text("changed since it was read")
    with pytest.raises(TuningError, match=r"mine\.epd hashes to"):
        delivery_setup.shared_files(config)
    shared = config.build.engines_path / book.sha256
    assert shared.exists() == (distribute == "path")
    content = shared.read_bytes() if distribute == "path" else store.file(book.sha256)
    assert content is not None and content.startswith(b"rnbqkbnr")


def tuned(store, found):
    """Play a prepared run to its end, with engines that are only named."""
    lease = store.acquire_master_lease(found.run.id, "m", 1000)
    master = Master(
        store=store,
        master_lease=lease,
        tuning=found.tuning,
        settings=found.settings,
        delivery=FixedDelivery(),
        watcher=Watched(),
        project=lambda _theta: None,
        stopping=FakeSleep(lambda: play(store)),
    )
    assert master.run() is RunStatus.FINISHED
    store.release_master_lease(lease)


def next_run(folder, store, rule="", params=PARAMS, k=4, doubt=20):
    config = CONFIG.replace("max_iterations = 4", f"max_iterations = 4\n{rule}")
    write_project(folder, config, params)
    origin = Origin(run=store.run("small"), k=k, doubt=doubt)
    return prepare(load_config(folder / "config.toml", {}), store, "next", origin=origin)


def test_a_run_that_builds_needs_its_source_also_if_the_file_has_become_one_of_options(
    project, store
):
    found = prepared(project, store, iterations=4, in_flight=1, rule="")
    (project / "config.toml").write_text('[delivery]\nkind = "uci"\nengine = "e"\n')
    config = load_config(project / "config.toml", {})
    with pytest.raises(InvalidInput, match=r"\[build\] source_path is missing"):
        delivery_setup.delivery_of(config, found.tuning.space, found.settings.delivery)


def test_a_binary_is_searched_with_once_for_each_run(project, store):
    script = Path(__file__).parents[1] / "support" / "engines" / "optional.py"
    (project / "script").write_text(
        f"#!/bin/sh\n[ $# = 0 ] && tee -a {project}/asked | {sys.executable} {script}\n"
    )
    (project / "script").chmod(0o755)
    uci = '[delivery]\nkind = "uci"\nengine = "script"\n'
    options = '[boldness]\nvalue = 3\nmin = 0\nmax = 50\nstep = 5\noption = "boldness"\n'
    text = CONFIG.replace('[build]\nsource_path = "engine"\n', uci).replace(
        "Hash = 1", "patience = 9"
    )
    write_project(project, text, options)
    config = load_config(project / "config.toml", {})

    def asked(name):
        (project / "asked").write_text("")
        opened(store, prepare(config, store, name))
        words = (project / "asked").read_text()
        return words.count("uci\n"), "go nodes" in words

    assert [asked(name) for name in ("one", "one", "two")] == [(2, True), (1, False), (2, True)]


def test_a_run_starts_where_another_one_was_and_is_replayed(project, store):
    tuned(store, prepared(project, store, iterations=4, in_flight=1, rule=""))
    parent = store.run("small")
    bound = int(parent.theta["margin"]) - 1
    margin, _, new = PARAMS.partition("[depth]")
    margin = margin.replace("value = 200", "value = 60").replace("max = 400", f"max = {bound}")
    found = next_run(project, store, params=f"{margin}[breadth]\nconstant = 'DEPTH'{new}")
    assert found.run.theta == {"margin": bound, "breadth": 3}
    (note,) = found.notes
    assert note == (
        "starts where run small was after 4 results, with doubt 20: 1 parameter; "
        "all others start from params.toml"
    )
    (event,) = [e for e in store.events(found.run.id) if e.kind == "start"]
    seed = found.run.seed
    assert event.detail == {"seed": seed, "run": "small", "at": 4, "doubt": 20.0}
    store.release_master_lease(store.acquire_master_lease(found.run.id, "left it unbegun", 30))
    kept = prepare(load_config(project / "config.toml", {}), store, "next")
    assert kept.run.theta == found.run.theta  # without the origin it is no other run
    again = next_run(project, store, params=PARAMS)  # unopened: the files are right now
    assert again.run.theta == parent.theta
    tuned(store, again)
    shown = status(store, store.run("next"))
    said = "\n".join(shown.sentences())
    assert "it started where run small was after 4 results, with doubt 20; the games of" in said
    assert record(STATUS, shown)["origin"] == {"run": "small", "at": 4, "doubt": 20.0}
    assert check_run(store, store.run("next"), tuning_of(store.run("next"))) == []


def test_a_run_may_start_after_any_result_of_another_and_goes_on_whatever_its_origin(
    project, store
):
    """And is told the steps that the games of the other suggest."""
    tuned(store, prepared(project, store, iterations=4, in_flight=1, rule=""))
    second = store.steps(store.run("small").id)[1].theta_after
    with pytest.raises(NothingToDo, match="run small has 4 results, so no theta of k=5"):
        next_run(project, store, k=5)
    begun = next_run(project, store, k=2)
    assert begun.run.theta == second
    opened(store, begun)
    again = next_run(project, store, k=4, doubt=1)
    assert again.run.theta == second
    assert again.notes == ("run next has begun and goes on; --from is for a new run",)
    parent = replace(store.run("small"), theta_better_step={"margin": 5.0, "depth": 2.0})
    config, origin = load_config(project / "config.toml", {}), Origin(run=parent, k=4, doubt=1.0)
    found = prepare(config, store, "third", origin=origin)
    step = found.tuning.space.active[0].step
    assert found.notes[1:] == (
        f"the games suggest other steps: margin 5 instead of {step:g}, depth 2 instead of 1",
    )


def test_a_rule_without_knowledge_has_theta_from_its_origin_and_frozen_values_stay(project, store):
    rule = 'algorithm = "fishtest"'
    tuned(store, prepared(project, store, iterations=4, in_flight=1, rule=rule))
    frozen = PARAMS.replace("max = 8", "max = 8\nactive = false")
    found = next_run(project, store, rule, frozen)
    assert found.run.theta == {**store.run("small").theta, "depth": 3}
    assert "with doubt 20: 1 parameter;" in found.notes[0]


SOURCE = "pub const margin: i32 = 50;\npub const ratio: f64 = 0.3;\npub const still: i32 = 50;\n"


def test_the_event_of_a_refused_level_is_written_once(store):
    staged = stage(store)
    for _ in range(2):
        staged.whole_iteration(refused={"x86-64-v3": "another bench", "x86-64-v4": "too"})
    told = [e.detail for e in staged.store.events(staged.run.id) if e.kind == "level_refused"]
    assert told == [
        {"level": "x86-64-v3", "reason": "another bench"},
        {"level": "x86-64-v4", "reason": "too"},
    ]


WHERE = "[build]\nwhere = 'worker'"


@pytest.mark.parametrize("where", ["[build]", WHERE])
def test_this_machine_needs_one_of_the_levels(where, tmp_path, monkeypatch):
    write_project(tmp_path, CONFIG.replace("[build]", f"{where}\nlevels = ['x86-64-v3']"))
    config = load_config(tmp_path / "config.toml", {})
    wanted = delivery_setup.delivery_settings(config)
    monkeypatch.setattr(delivery_setup, "provided", lambda: ("linux", "x86-64", "x86-64-v2"))
    with pytest.raises(InvalidInput, match=r":\d+: \[build\] .* only linux, x86-64, x86-64-v2"):
        delivery_setup.delivery_of(config, SPACE, wanted)
    assert not (tmp_path / ".tuning").exists()


def test_where_workers_build_a_probe_builds_the_highest_level_of_this_machine(
    tmp_path, monkeypatch
):
    levels = "levels = ['x86-64', 'x86-64-v2', 'x86-64-v3']"
    write_project(tmp_path, CONFIG.replace("[build]", f"{WHERE}\n{levels}"))
    (tmp_path / "engine/src/engine_constants.rs").write_text(SOURCE)
    config = load_config(tmp_path / "config.toml", {})
    monkeypatch.setattr(delivery_setup, "provided", lambda: ("linux", "x86-64", "x86-64-v2"))
    made = []
    monkeypatch.setattr(delivery_setup, "Builder", lambda _, recipe, *__: made.append(recipe))
    with delivery_setup.temporary_delivery(config, SPACE):
        assert [recipe.level for recipe in made] == ["x86-64-v2"]


@pytest.mark.parametrize(("cores", "builds"), [(1, 1), (11, 2), (999, 8)])
def test_builds_share_the_cores(cores, builds, monkeypatch):
    monkeypatch.setattr(delivery_setup.system, "logical_cores", lambda: set(range(cores)))
    assert delivery_setup.usual_builds() == builds
