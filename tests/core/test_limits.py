"""Every number and text of `limits`: what lies outside is refused by the store and by the database.

With the name of the column, on both databases.
"""

import hashlib
from math import inf, nan

import pytest
import sqlalchemy as sa
from builders import LEASE, new_engine, new_worker, result_of, stage

from spsa.core.limits import (
    COUNTS,
    LEASE_SECONDS,
    LEAST_MEASURED,
    LENGTHS,
    MEASURED,
    RANGES,
    check_values,
)
from spsa.core.scoring import Tally
from spsa.db.connection import create_engine, parse_url
from spsa.db.indexes import metadata
from spsa.db.store import BatchResult, NewBuild, open_store
from spsa.errors import OutOfRange

DOUBLES = {
    (table, column)
    for table, columns in RANGES.items()
    for column in columns
    if isinstance(metadata.tables[table].c[column].type, sa.Double)
}
JSONS = {
    column
    for table, columns in LENGTHS.items()
    for column in columns
    if isinstance(metadata.tables[table].c[column].type, sa.JSON)
}
LIMITED = {
    (table, column)
    for tables in (RANGES, LENGTHS)
    for table, columns in tables.items()
    for column in columns
}


def wrong_numbers():
    """One below, one above, and for a double what is no number."""
    for table, columns in RANGES.items():
        for column, (least, most) in columns.items():
            odd = (nan, inf, -inf) if (table, column) in DOUBLES else ()
            tiny = (1e-310, LEAST_MEASURED / 2) if column in MEASURED else ()
            for value in (least - 1, most + 1, *odd, *tiny):
                yield pytest.param(table, column, value, id=f"{table}.{column}={value:g}")


def wrong_texts():
    for table, columns in LENGTHS.items():
        for column, (least, most) in columns.items():
            for length in {max(least - 1, 0), most + 1} - {least}:
                value = "x" * length if column not in JSONS else '"' + "x" * (length - 2) + '"'
                yield pytest.param(table, column, value, id=f"{table}.{column}[{length}]")
            if column == "sha256":
                for odd in ("x" * 64, "a" * 62 + "\n\x1b"):
                    yield pytest.param(table, column, odd, id=f"{table}.{column}={odd[-2:]!a}")


def right_values():
    for table, columns in RANGES.items():
        for column, bounds in columns.items():
            if column not in COUNTS:
                least = (LEAST_MEASURED,) if column in MEASURED else ()
                yield from ((table, column, value) for value in (*bounds, *least))
    for table, columns in LENGTHS.items():
        for column, bounds in columns.items():
            if column in JSONS:
                yield table, column, '"' + "x" * (bounds[1] - 2) + '"'
            else:
                letter = "a" if column == "sha256" else "x"
                yield from ((table, column, letter * length) for length in bounds)


@pytest.fixture(scope="module")
def limited(shared_database_url):
    """A database with a row in every table that has limits."""
    with open_store(shared_database_url, durable=False) as store:
        run = stage(store)
        run.open()
        store.fail(run.claim("failed"), "broken", sha256=new_engine().sha256)
        store.set_aside("machine", "why", "me", sha256=new_engine("other").sha256)
        archive = hashlib.sha256(b"").hexdigest()
        store.keep_archive(archive, b"")
        words = {"requires": ("builds",), "archive_sha256": archive, "recipe": {"x": 1}}
        store.order_build(NewBuild(key="k", max_attempts=5, **words))
        builder = store.register_worker(new_worker(provides=("builds",)))
        store.fail_build(store.claim_build("b", builder, LEASE), "broken")
    engine = create_engine(parse_url(shared_database_url), durable=False)
    yield engine
    engine.dispose()


def write(engine, table, column, value):
    """One column of all rows by SQL text, and back again; what the database then holds."""
    # PostgreSQL: a machine and a worker are named by other rows, whose keys come at the end
    cast = "CAST(:value AS JSON)" if column in JSONS else ":value"
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
            cast = ":value"
        else:
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
        only = "(SELECT MAX(id) FROM spsa_batch)" if table == "spsa_batch" else "NULL"
        where = f" WHERE id = {only}" if table == "spsa_batch" else ""
        text = f"UPDATE {table} SET {column} = {cast}{where}"  # noqa: S608
        try:
            connection.execute(sa.text(text), {"value": value})
            return connection.scalar(sa.text(f"SELECT MAX({column}) FROM {table}{where}"))  # noqa: S608
        finally:
            connection.rollback()


@pytest.mark.parametrize(("table", "column", "value"), [*wrong_numbers(), *wrong_texts()])
def test_the_database_refuses_what_lies_outside(limited, table, column, value):
    if limited.dialect.name == "sqlite" and value != value and table == "spsa_worker":
        assert write(limited, table, column, value) is None  # SQLite knows no NaN, and NULL may be
        return
    # a count alone never agrees with the others of its batch, which is seen before or after
    names = (column, "counts") if column in COUNTS else (column,)
    with pytest.raises(sa.exc.IntegrityError) as refused:
        write(limited, table, column, value)
    said = str(refused.value.orig)
    assert any(f"ck_{table}_{name}" in said or f"{table}.{name}" in said for name in names), said


def test_the_database_takes_the_limits_themselves(limited):
    for table, column, value in right_values():
        if column not in JSONS or limited.dialect.name == "sqlite":
            assert write(limited, table, column, value) == value, (table, column)


def test_every_column_has_a_check_of_its_name(limited):
    seen = sa.inspect(limited)
    found = {
        (table, check["name"])
        for table in {table for table, _ in LIMITED}
        for check in seen.get_check_constraints(table)
    }
    named = {(table, "counts" if column in COUNTS else column) for table, column in LIMITED}
    assert {(table, f"ck_{table}_{name}") for table, name in named} <= found


@pytest.mark.parametrize(("table", "column", "value"), [*wrong_numbers(), *wrong_texts()])
def test_the_limits_name_the_column(table, column, value):
    with pytest.raises(OutOfRange, match=rf"{table}\.{column} "):
        check_values(table, {column: value})


@pytest.mark.parametrize("value", [10**400, -(10**5000)], ids=["400 digits", "5000 digits"])
def test_a_number_beyond_any_double_is_out_of_range(value):
    with pytest.raises(OutOfRange, match=r"moves is a number of hundreds of digits"):
        check_values("spsa_batch", {"moves": value})


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_text_that_no_database_keeps(text):
    with pytest.raises(OutOfRange, match=r"spsa_worker\.name has unprintable characters"):
        check_values("spsa_worker", {"name": text})


@pytest.fixture
def run(store):
    started = stage(store)
    started.open()
    return started


def test_the_store_refuses_what_a_worker_says_of_itself(run):
    store = run.store
    facts = {"name": "", "platform": "x" * 201, "version": "x" * 201, "confinement": "x" * 201}
    for column, value in {**facts, "cores": 0, "concurrency": 10**6}.items():
        with pytest.raises(OutOfRange, match=rf"spsa_worker\.{column} "):
            store.register_worker(new_worker(**{"name": "machine-2"} | {column: value}))
    with pytest.raises(OutOfRange, match=r"spsa_machine\.name "):
        store.register_worker(new_worker(host="x" * 221))
    for nps in (nan, inf, -1.0, 1e13):
        with pytest.raises(OutOfRange, match=r"spsa_worker\.nps "):
            store.touch_worker(run.worker, nps)
    assert [worker.name for worker in store.workers()] == ["machine-1"]
    assert store.workers()[0].nps is None


def odd_results(claim):
    """Results of a claim of two pairs, each with one column that lies outside."""
    costs = RANGES["spsa_batch"].keys() - set(COUNTS) - {"void_games"}
    for column in sorted(costs):
        least, most = RANGES["spsa_batch"][column]
        odd = (nan, inf, -inf) if ("spsa_batch", column) in DOUBLES else ()
        for value in (least - 1, most + 1, *odd):
            yield column, result_of(claim, **{column: value})
    yield "void_games", result_of(claim, voids={"crash": 2_000_000_000})
    yield "void_games", result_of(claim, voids={"crash": -1})
    yield "void_games", result_of(claim, voids={"crash": -1, "hang": 3})
    yield "voids", result_of(claim, voids={"x" * 20_000_000: 1})
    yield "plus_wins", BatchResult(tally=Tally(-1, 1, 4, (1, 0, 1, 0, 0)))
    yield "ptnml_2", BatchResult(tally=Tally(0, 2, 2, (1, 1, -1, 1, 0)))
    yield "draws", BatchResult(tally=Tally(0, 0, 2**40, (0, 0, 2**39, 0, 0)))


def test_the_store_refuses_results_that_no_games_have(run):
    claim = run.claim("a")
    for column, result in odd_results(claim):
        with pytest.raises(OutOfRange, match=rf"spsa_batch\.{column} "):
            run.store.report(claim, result)
    assert run.store.report(claim, result_of(claim)) == "accepted"


def test_the_store_refuses_odd_claims_failures_and_leases(run):
    store, claim = run.store, run.claim("a")
    for claim_id in ("", "x" * 65):
        with pytest.raises(OutOfRange, match=r"spsa_batch\.claim_id "):
            run.claim(claim_id)
    for seconds in (LEASE_SECONDS[0] - 1, LEASE_SECONDS[1] + 1, nan, inf):
        with pytest.raises(OutOfRange, match="a lease"):
            run.claim("b", seconds)
        with pytest.raises(OutOfRange, match="a lease"):
            store.renew(["a"], seconds)
    for column, odd in {
        "last_error": {"reason": "x" * 2001},
        "void_games": {"reason": "why", "void_games": 1_000_001},
        "sha256": {"reason": "why", "sha256": "x"},
    }.items():
        with pytest.raises(OutOfRange, match=rf"\.{column} "):
            store.fail(claim, **odd)
    with pytest.raises(OutOfRange, match="at most 10000"):
        store.renew(["a"] * 10_001, LEASE)
    with pytest.raises(OutOfRange, match=r"spsa_set_aside\.reason "):
        store.set_aside("machine", "", "me")
    assert store.report(claim, result_of(claim)) == "accepted"


def test_void_games_of_one_machine_never_refuse_the_result_of_another(run, sql):
    """Each try of a batch may have void games; their sum stops at its limit."""
    claim = run.claim("a")
    run.store.fail(claim, "why", void_games=1_000_000)
    again = run.claim("b")
    assert run.store.report(again, result_of(again, voids={"crash": 2})) == "accepted"
    assert sql("SELECT void_games FROM spsa_batch WHERE seq = 0") == [(1_000_000,)]
    assert sql("SELECT void_games FROM spsa_iteration") == [(1_000_000,)]
