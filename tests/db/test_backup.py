"""A copy that is taken while a run is live ends with the same theta as the run itself."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from asking import Store
from builders import LEASE, Stage, new_worker, result_of, stage
from console import call, master
from invariants import broken
from shell import Shell

ITERATIONS = 40


def played(run, iterations):
    while run.now().applied < iterations:
        if not run.store.open_iterations(run.run.id):
            run.open()
        run.play()
        run.apply()
    return dict(run.now().theta)


def of_the_copy(url):
    """What becomes of the copy: time has passed, a new master and a new worker come."""
    with Store(url, durable=False) as store, closing(Shell(url)) as sql:
        run = store.run()
        assert 0 < run.applied < ITERATIONS
        for row in sql("SELECT id FROM spsa_batch WHERE status = 'leased'"):
            sql.expire(row.id)
        sql.expire(run_id=run.id)
        master = store.acquire_master_lease(run.id, "m2", LEASE)
        worker = store.register_worker(new_worker())
        theta = played(Stage(store, run, master, worker), ITERATIONS)
        assert broken(sql) == []
    return theta


@pytest.mark.slow
def test_a_file_is_copied_while_the_run_goes_on(sqlite_url, project):
    """With a batch leased."""
    with Store(sqlite_url, durable=False) as store, ThreadPoolExecutor(1) as pool:
        run = stage(store, max_iterations=ITERATIONS)
        run.whole_iteration()
        run.open()
        held = run.claim("held while the copy is made")
        playing = pool.submit(
            lambda: (store.report(held, result_of(held)), played(run, ITERATIONS - 2))
        )
        done = call(master("db", "backup", "copy.db"), project, DATABASE_URL=sqlite_url)
        assert (done.returncode, done.stdout) == (0, f"{sqlite_url} is copied to copy.db\n")
        playing.result()
        theta = played(run, ITERATIONS)
    assert [path.name for path in project.glob("copy.db*")] == ["copy.db"]
    assert of_the_copy(f"sqlite:///{project / 'copy.db'}") == theta


@pytest.mark.slow
def test_a_copy_is_never_half_there_nor_written_over_another(sqlite_url, project):
    (project / "copy.db.unfinished").write_text("of a copy that was cut off")
    backup = master("db", "backup", "copy.db")
    assert call(backup, project, DATABASE_URL=sqlite_url).returncode == 0
    before = (project / "copy.db").read_bytes()
    again = call(backup, project, DATABASE_URL=sqlite_url)
    assert again.returncode == 2
    assert "copy.db: [db backup] it exists; name a file" in again.stderr
    assert (project / "copy.db").read_bytes() == before
    assert not (project / "copy.db.unfinished").exists()
    nowhere = call(master("db", "backup", "no/copy.db"), project, DATABASE_URL=sqlite_url)
    assert nowhere.returncode == 2
    assert "no/copy.db: [db backup] there is no folder no" in nowhere.stderr


@pytest.mark.slow
def test_of_a_server_the_right_tool_is_named(postgresql_url, project):
    done = call(master("db", "backup", "copy.db"), project, DATABASE_URL=postgresql_url)
    assert (done.returncode, "pg_dump --format=custom" in done.stderr) == (2, True)
