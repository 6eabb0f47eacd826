"""From files to a run: which rule it gets, and what its owner is told before anything is played."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from console import CONFIG, PARAMS, write_project
from masters import FakeSleep, FixedDelivery, Watched, play
from shell import Shell

from spsa.builds.artifacts import FILES
from spsa.cli import execute
from spsa.config import load_config
from spsa.db.migrate import upgrade
from spsa.db.store import Store, open_store
from spsa.errors import InvalidInput, UnusableState
from spsa.history.doctor import check_run
from spsa.lifecycle import RunStatus
from spsa.master.loop import Master
from spsa.master.new_run import Prepared
from spsa.master.session import tuning_of
from spsa.master.start import prepare
from spsa.report.status import status
from spsa.report.text import headlines


@pytest.fixture
def project(tmp_path: Path) -> Path:
    upgrade(f"sqlite:///{tmp_path / 'spsa.db'}")
    return tmp_path


@pytest.fixture
def store(project: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{project / 'spsa.db'}", durable=False) as opened:
        yield opened


def prepared(folder: Path, store: Store, *, iterations: int, in_flight: int, rule: str) -> Prepared:
    config = CONFIG.replace("max_iterations = 4", f"max_iterations = {iterations}\n{rule}")
    config = config.replace("batch_size = 2", f"batch_size = 2\niterations_in_flight = {in_flight}")
    write_project(folder, config)
    return prepare(load_config(folder / "config.toml", {}), store)


def opened(store: Store, found: Prepared) -> None:
    """Let the run have a result, so that it is not started anew."""
    altered(store, "UPDATE spsa_run SET applied = 1 WHERE id = :id", id=found.run.id)


def altered(store: Store, statement: str, **values: object) -> None:
    shell = Shell(store.where)
    shell(statement, **values)
    shell.close()


def test_a_run_has_the_rule_of_its_configuration(project: Path, store: Store) -> None:
    first = prepared(project, store, iterations=99, in_flight=1, rule="").run
    assert first.algorithm == "mixture"
    store.release_master_lease(
        store.acquire_master_lease(first.id, "a master that left it unbegun", 30)
    )
    other = prepared(project, store, iterations=99, in_flight=1, rule="a = 0.1")
    assert other.run.algorithm == other.tuning.rule.name == "spsa"


@pytest.mark.parametrize(
    ("rule", "iterations", "in_flight", "free"),
    [
        ("", 300, 4, 3),
        ("", 300, 3, None),
        ("", 5000, 8, None),
        ("", 5000, 9, 8),
        ("algorithm = 'spsa'", 199, 2, 1),
        ("algorithm = 'spsa'", 200, 2, None),
        ("algorithm = 'spsa'", 9, 1, None),
    ],
)
def test_too_much_in_flight_is_told_by_rule_and_length(
    project: Path, store: Store, rule: str, iterations: int, in_flight: int, free: int | None
) -> None:
    notes = prepared(project, store, iterations=iterations, in_flight=in_flight, rule=rule).notes
    assert list(notes) == (
        []
        if free is None
        else [
            f"iterations_in_flight = {in_flight} lets a run of {iterations} iterations move on old "
            f"results; {free} gains more"
        ]
    )


def test_a_run_keeps_its_rule_and_says_what_the_file_has_now(project: Path, store: Store) -> None:
    before = prepared(project, store, iterations=99, in_flight=1, rule="algorithm = 'spsa'")
    opened(store, before)
    after = prepared(project, store, iterations=99, in_flight=1, rule="")
    assert after.run.algorithm == after.tuning.rule.name == "spsa"
    assert "config.toml: algorithm is mixture, the run has spsa" in after.notes


def test_a_run_of_an_unknown_rule_is_said(
    project: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    found = prepared(project, store, iterations=9, in_flight=1, rule="")
    opened(store, found)
    altered(store, "UPDATE spsa_run SET algorithm = 'mixtures'")
    with pytest.raises(UnusableState, match="did you mean 'mixture'"):
        tuning_of(store.run())
    assert execute(["doctor", "--config", str(project / "config.toml")]) == 2
    assert "another version of this program started run small" in capsys.readouterr().err


@pytest.mark.parametrize("distribute", ["path", "database"])
def test_a_new_run_shares_its_book_as_it_shares_its_engines(
    distribute: str, project: Path, store: Store
) -> None:
    (project / "mine.epd").write_text("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -\n")
    rules = CONFIG.replace("batch_size = 2", 'batch_size = 2\nbook = "mine.epd"')
    write_project(project, rules.replace("[build]", f'[build]\ndistribute = "{distribute}"'))
    config = load_config(project / "config.toml", {})
    book = prepare(config, store).run.game_settings.book
    (project / "mine.epd").unlink()
    shared = config.build.engines_path / FILES / book.sha256
    assert shared.exists() == (distribute == "path")
    content = shared.read_bytes() if distribute == "path" else store.file(book.sha256)
    assert content is not None and content.startswith(b"rnbqkbnr")


PRIOR = 'prior = "run small"'


def tuned(store: Store, found: Prepared) -> None:
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


def next_run(folder: Path, store: Store, rule: str = PRIOR, params: str = PARAMS) -> Prepared:
    config = CONFIG.replace("max_iterations = 4", f"max_iterations = 4\n{rule}")
    write_project(folder, config, params)
    return prepare(load_config(folder / "config.toml", {}), store, "next")


def test_a_run_starts_from_what_its_prior_learned_and_is_replayed(
    project: Path, store: Store
) -> None:
    tuned(store, prepared(project, store, iterations=4, in_flight=1, rule=""))
    parent = store.run("small")
    bound = int(parent.theta["margin"]) - 1
    margin, _, new = PARAMS.partition("[depth]")
    margin = margin.replace("value = 200", "value = 60").replace("max = 400", f"max = {bound}")
    found = next_run(project, store, params=f"{margin}[breadth]\nconstant = 'DEPTH'{new}")
    assert found.run.theta == {"margin": bound, "breadth": 3}
    (note,) = found.notes
    assert note == (
        "starts from what run small learned in 4 iterations, with doubt 20: theta, and knowledge "
        "of 1 parameter; without knowledge, from params.toml: breadth; not tuned any more: depth; "
        "moved into new bounds: margin"
    )
    (event,) = [e for e in store.events(found.run.id) if e.kind == "prior"]
    assert event.detail == {"of": "small", "at": 4, "doubt": 20.0}
    store.release_master_lease(store.acquire_master_lease(found.run.id, "left it unbegun", 30))
    again = next_run(project, store, params=PARAMS)  # unopened: the files are right now
    assert again.run.theta == parent.theta
    tuned(store, again)
    shown = status(store, store.run("next"))
    assert "  it started from what run small learned, with doubt 20" in headlines(shown)
    assert (shown.to_json()["prior"], shown.to_json()["prior_doubt"]) == ("small", 20)
    assert check_run(store, store.run("next"), tuning_of(store.run("next"))) == []


def test_a_rule_without_knowledge_has_theta_from_its_prior_and_frozen_values_stay(
    project: Path, store: Store
) -> None:
    rule = 'algorithm = "fishtest"'
    tuned(store, prepared(project, store, iterations=4, in_flight=1, rule=rule))
    frozen = PARAMS.replace("max = 8", "max = 8\nactive = false")
    found = next_run(project, store, f"{rule}\n{PRIOR}", frozen)
    assert found.run.theta == {**store.run("small").theta, "depth": 3}
    assert "with doubt 20: theta of 1 parameter; not tuned any more: depth" in found.notes[0]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ('prior = "run smal"', "run smal is not in this database; its runs: small"),
        ('prior = "run next"', "run next is this run itself"),
        (PRIOR, "run small has no finished iteration"),
        (f'algorithm = "spsa"\n{PRIOR}', 'has algorithm = "mixture", and this run "spsa"'),
        ('prior = "small"', "names no run; write prior = "),
        ("prior_doubt = 2", "prior_doubt without a prior"),
        (f"{PRIOR}\nprior_doubt = 0.5", "prior_doubt = 0.5 is too small; use at least 1"),
    ],
)
def test_a_prior_that_cannot_be_one_is_refused_with_its_line(
    project: Path, store: Store, rule: str, said: str
) -> None:
    before = prepared(project, store, iterations=4, in_flight=1, rule="")
    if "algorithm" in rule:
        opened(store, before)
    with pytest.raises(InvalidInput) as refused:
        next_run(project, store, rule)
    (fault,) = refused.value.faults
    assert said in str(fault)
    assert fault.line is not None
    written = (project / "config.toml").read_text().splitlines()[fault.line - 1]
    assert written.startswith("prior")
    assert store.find_run("next") is None
