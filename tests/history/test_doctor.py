"""The doctor finds nothing in a sound run, and each thing that was broken by hand in SQL.

A row that cannot be read is a sentence that names the column, never a defect: on SQLite, whose
columns take any text; PostgreSQL's take no text that is not JSON.
"""

import json
import math
import re
import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from asking import Store
from builders import TERMS, new_engine, result_of, stage
from console import call, worker
from golden import compare_cases
from masters import RunUnderTest, settings
from purges import moved
from purges import violations as known_engines
from shell import Shell

from spsa.cli import execute
from spsa.config.space import load_space
from spsa.core.json_values import to_json
from spsa.history.doctor import check_run
from spsa.master.session import tuning_of


@pytest.fixture
def run(sqlite_store, tmp_path):
    return begun(sqlite_store, tmp_path)


def begun(store, folder):
    """Two applied iterations, one half played, their engines on the disk."""
    sides = {}
    for name in ("plus", "minus"):
        (folder / name).write_text(name)
        sides[name] = new_engine(name, path=str(folder / name))
    run = stage(store, max_iterations=9)
    for _ in range(2):
        run.whole_iteration(**sides)
    run.open(**sides)
    run.store.report(claim := run.claim("x"), result_of(claim, voids={"crash": 2}))
    run.claim("y")
    return run


def violations(run):
    return check_run(run.store, run.now())


def test_what_was_broken_is_named(sqlite_template, tmp_path):
    for name, made in (("first", lambda store: begun(store, tmp_path)), ("tested", tuned)):
        path = shutil.copy(sqlite_template, tmp_path / name)
        with Store(f"sqlite:///{path}", durable=False) as store:
            made(store)

    def found(files):
        ((name, statement),) = files.items()
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{shutil.copy(tmp_path / name, folder)}"
            with Store(url) as store, closing(Shell(url)) as sql:
                sql("PRAGMA ignore_check_constraints = ON")
                sql(statement)
                run = store.run()
                said = known_engines(store, run, tuning_of(run) if name == "tested" else None)
        assert said, "nothing is found"
        for violation in said[:2]:
            yield re.sub(r"\d+\.\d{6,}", lambda number: f"{float(number[0]):.6g}", violation)
        yield from [f"and {len(said) - 2} more"] * (len(said) > 2)

    compare_cases(Path(__file__).with_name("doctor.txt"), found)


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        ("spsa_step", "theta_before", "iteration 1: theta before step k=1, ratio:"),
        ("spsa_step", "theta_after", "iteration 1: theta after step k=1, ratio:"),
        ("spsa_step", "delta", "iteration 1: theta after step k=1, ratio:"),
        ("spsa_run", "start_theta", "iteration 1: theta before step k=1, ratio:"),
        ("spsa_run", "theta", "run first: the run's theta, ratio:"),
    ],
)
def test_a_hair_of_theta_is_enough(run, sql, table, column, words):
    (row,) = sql(f"SELECT {column} FROM {table} WHERE id = 1")  # noqa: S608
    values = json.loads(row[0])
    values["ratio"] += 2**-50
    sql(f"UPDATE {table} SET {column} = :values WHERE id = 1", values=json.dumps(values))  # noqa: S608
    assert any(words in violation for violation in violations(run)), violations(run)


def test_an_engine_that_was_changed_is_found_while_it_is_played(run, tmp_path, sql):
    (tmp_path / "plus").write_text("something else")
    (violation,) = violations(run)
    assert "run first iteration 3" in violation
    assert new_engine("plus").sha256 in violation
    (tmp_path / "plus").unlink()
    assert len(violations(run)) == 1
    sql("UPDATE spsa_engine SET bytes = :b WHERE sha256 = :s", b=b"plus", s=new_engine().sha256)
    assert violations(run) == [], "the database has it"
    (tmp_path / "minus").unlink()
    run.store.stop("first", "me", "enough")
    assert violations(run) == [], "its games are over"


def tuned(store, algorithm="spsa"):
    """A run that a real rule moves, two iterations in flight."""
    tested = RunUnderTest(store, algorithm=algorithm, iterations=9)
    moved(tested)
    return tested


def replayed(tested):
    return known_engines(tested.store, tested.now(), tested.tuning)


def write_estimates(sql, estimates):
    sql("UPDATE spsa_run SET estimates = :values", values=json.dumps(to_json(estimates)))


def test_an_estimate_that_was_changed_is_found(sqlite_store, sql):
    run = tuned(sqlite_store)
    known = run.now().estimates

    def replayed_with(**changed):
        write_estimates(sql, replace(known, **changed))
        return replayed(run)

    for name in sorted(asdict(known).keys() - {"better_step"}):  # none yet
        right = asdict(known)[name]
        (found,) = replayed_with(**{name: {**right, "margin": right["margin"] * (1 + 1e-8)}})
        assert found.startswith(f"run tested: the run's estimates.{name}, margin: ")
        found = replayed_with(**{name: None})
        assert all(f"the run's estimates.{name}, " in one and ": None;" in one for one in found)
        assert len(found) == len(right)
    (found,) = replayed_with(better_step={"margin": 8.0})
    assert found.startswith("run tested: the run's estimates.better_step, margin: 8")


def test_what_another_processor_rounds_otherwise_is_no_finding(sqlite_store, sql):
    run = tuned(sqlite_store, "mixture")
    values = {name: x * (1 + 2**-50) for name, x in run.now().estimates.supported.items()}
    write_estimates(sql, replace(run.now().estimates, supported=values))
    assert replayed(run) == []


def other_state(run):
    rule = tuning_of(run.now()).observed
    state = rule.load(run.now().state)
    state.rule.theta[0] *= 1 + 1e-8
    return json.dumps(rule.dump(state))


@pytest.mark.parametrize("broken", [other_state, '{"rule": 3, "witness": 5}', "[]"])
def test_a_state_that_was_changed_is_found(sqlite_store, sql, broken):
    run = tuned(sqlite_store)
    sql("UPDATE spsa_run SET state = :s", s=broken(run) if callable(broken) else broken)
    assert any("the rule's state" in found for found in replayed(run))


SETTINGS = settings("auto", 4)


@pytest.fixture
def damage(project, project_store):
    """Writes into a column of the project's database, whose run has an open iteration."""
    facts = {"name": "small", "algorithm": "spsa", "settings": SETTINGS.to_json()}
    stage(project_store, load_space(project / "params.toml"), **facts).open()

    def write(table, column, text):
        with closing(sqlite3.connect(project / "spsa.db")) as database, database:
            database.execute(f"UPDATE {table} SET {column} = ?", (text,))  # noqa: S608

    return write


PLAYED = to_json(TERMS)
WRONG = {
    "settings": {**SETTINGS.to_json(), "games_per_iteration": "x"},
    "space": {"parameters": [{"name": "margin", "value": 200}], "constraints": []},
    "game_settings": {**PLAYED, "time_control": {**PLAYED["time_control"], "low": math.nan}},
    "theta": {"margin": 200.0, "depth": [1, "a"]},
}


@pytest.mark.slow
@pytest.mark.parametrize("text", ["{oops", "[]", None], ids=["no JSON", "no object", "a value"])
@pytest.mark.parametrize("column", WRONG)
@pytest.mark.parametrize("command", ["status", "doctor", "run"])
def test_a_damaged_run(command, column, text, damage, capsys):
    damage("spsa_run", column, text or json.dumps(WRONG[column]))
    code, said = execute([command]), capsys.readouterr().err
    if (command, column, code) == ("status", "settings", 0):
        return  # which it looks at once it knows how quickly games are played
    assert code == 2, said
    assert "a column " in said and "from a backup" in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize("column", ["theta", "start_theta"])
@pytest.mark.parametrize("command", ["status", "run"])
def test_a_theta_without_a_parameter(command, column, damage, capsys):
    damage("spsa_run", column, '{"margin": 200.0}')
    code, said = execute([command]), capsys.readouterr().err
    assert code == 2, said
    assert "'depth'" in said and "from a backup" in said


@pytest.mark.slow
@pytest.mark.parametrize("text", ["{oops", "[]", "{}", json.dumps({**PLAYED, "book": 3})])
def test_a_worker_that_gets_a_damaged_iteration(project, damage, text):
    damage("spsa_iteration", "game_settings", text)
    done = call(worker("--spsa", "-c", "1", "--once", "--engines-cache", "cache"), project)
    assert done.returncode == 2, done.stderr
    assert "a column " in done.stderr and "from a backup" in done.stderr
