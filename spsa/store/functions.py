"""What a worker does, as functions of a PostgreSQL server: one call, one round trip, one commit.

Each is made from the very statements that `claims`, `reports` and `roster` run one by one on
SQLite, so that no guard is spelled twice. They belong to who owns the tables and run as that role:
a login that may call them and nothing else can claim and report and nothing else. Migrations make
them; one that changes a statement of theirs has to make them anew.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from spsa.lifecycle import BatchStatus, RunStatus
from spsa.schema import batches, events, iterations, workers
from spsa.store import turns
from spsa.store.claims import (
    beginning,
    bytes_of,
    expired,
    holding,
    ready,
    renewing,
    taking,
    telling,
    unfinished,
)
from spsa.store.database import COUNTS
from spsa.store.halting import locking, pausing
from spsa.store.reports import (
    REPORTED,
    adding_voids,
    counting,
    failing,
    releasing,
    reported_by,
    settling,
)
from spsa.store.roster import FACTS, alive, known_again, new_here

LOST, CONFLICT = "SP001", "SP002"
"""The SQLSTATEs of LeaseLost and ReportConflict."""

LONGEST_LEASE_SECONDS = 86400

_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]


def statements(schema: str) -> Iterator[str]:
    """Everything that makes the functions in a schema, for its owner alone to call."""
    for signature, body in _functions().items():
        name, _, returns = signature.partition(") ")
        yield (
            f"CREATE OR REPLACE FUNCTION {name}) {returns} LANGUAGE plpgsql SECURITY DEFINER"
            f" SET search_path = {schema}, pg_temp AS $body$\n#variable_conflict use_column\n"
            f"{body}$body$"
        )
        yield f"REVOKE ALL ON FUNCTION {_called(signature)} FROM PUBLIC"


def dropping() -> Iterator[str]:
    """Everything that removes them again."""
    for signature in _functions():
        yield f"DROP FUNCTION {_called(signature)}"


def names() -> list[str]:
    """All functions, with the types of their arguments, as GRANT wants them."""
    return [_called(signature) for signature in _functions()]


def _called(signature: str) -> str:
    name, _, rest = signature.partition("(")
    arguments = rest.partition(") RETURNS")[0]
    types = [argument.strip().partition(" ")[2] for argument in arguments.split(",") if argument]
    return f"{name}({', '.join(types)})"


def _given(name: str) -> sa.ColumnElement[Any]:
    """A variable of a function."""
    return sa.literal_column(name)


def _sql(statement: sa.ClauseElement) -> str:
    return str(statement.compile(dialect=_POSTGRESQL, compile_kwargs={"literal_binds": True}))


def _type(column: Any) -> str:
    return str(column.type.compile(dialect=_POSTGRESQL))


def _typed(columns: Mapping[str, Any], prefix: str = "p_") -> str:
    return ", ".join(f"{prefix}{name} {_type(column)}" for name, column in columns.items())


def _functions() -> dict[str, str]:
    """Signature -> body of each function."""
    told = telling(_given("v_batch_id"))
    answer = _typed({column.name: column for column in told.selected_columns}, prefix="")
    facts = _typed({name: workers.c[name] for name in FACTS})
    results = _typed({name: batches.c[name] for name in REPORTED})
    return {
        "spsa_claim(p_claim_id TEXT, p_worker_id BIGINT, p_lease_seconds DOUBLE PRECISION,"
        f" p_lot DOUBLE PRECISION) RETURNS TABLE ({answer})": _claim(told),
        "spsa_renew(p_claim_ids TEXT[], p_lease_seconds DOUBLE PRECISION) RETURNS SETOF TEXT": (
            _renew()
        ),
        f"spsa_report(p_batch_id BIGINT, p_claim_id TEXT, p_void_games INTEGER, {results})"
        " RETURNS TEXT": _report(),
        "spsa_release(p_batch_id BIGINT, p_claim_id TEXT) RETURNS VOID": _only(
            releasing(_given("p_batch_id"), _given("p_claim_id"))
        ),
        "spsa_fail(p_batch_id BIGINT, p_claim_id TEXT, p_reason TEXT, p_void_games INTEGER)"
        " RETURNS VOID": _fail(),
        f"spsa_register_worker(p_name TEXT, {facts}) RETURNS BIGINT": _register(),
        "spsa_touch_worker(p_worker_id BIGINT, p_nps DOUBLE PRECISION) RETURNS VOID": _only(
            alive(_given("p_worker_id"), _given("p_nps"))
        ),
        "spsa_engine_bytes(p_sha256 TEXT) RETURNS BYTEA": _answer(bytes_of(_given("p_sha256"))),
        "spsa_work_left() RETURNS BOOLEAN": _answer(unfinished()),
    }


def _only(statement: sa.ClauseElement) -> str:
    return f"BEGIN\n{_sql(statement)};\nEND\n"


def _answer(statement: sa.Select[Any]) -> str:
    return f"BEGIN\nRETURN ({_sql(statement)});\nEND\n"


_LEASE_IS_SANE = f"""
IF p_lease_seconds IS NULL OR p_lease_seconds NOT BETWEEN 0 AND {LONGEST_LEASE_SECONDS} THEN
    RAISE EXCEPTION USING ERRCODE = '22023',
        MESSAGE = 'a lease lasts at most {LONGEST_LEASE_SECONDS} seconds';
END IF;
"""


def _claim(told: sa.Select[Any]) -> str:
    claim_id, iteration_id = _given("p_claim_id"), _given("v_iteration_id")
    taken = taking(_given("v_batch_id"), claim_id, _given("p_worker_id"), _given("p_lease_seconds"))
    return f"""DECLARE v_batch_id BIGINT; v_status TEXT; v_iteration_id BIGINT; v_contested BOOLEAN;
BEGIN
{_LEASE_IS_SANE}
{_sql(holding(claim_id))} INTO v_batch_id, v_status;
IF v_status = '{BatchStatus.DONE}' THEN
    RAISE EXCEPTION USING ERRCODE = '{LOST}',
        MESSAGE = 'claim ' || p_claim_id || ' has been reported; new work takes a new claim';
END IF;
IF v_batch_id IS NULL THEN
    {_sql(turns.is_contested())} INTO v_contested;
    IF v_contested THEN
        {_first_free(turns.playable(_given("p_lot")))}
    ELSE
        {_first_free(turns.uncontested())}
    END IF;
    IF v_batch_id IS NULL THEN
        RETURN;
    END IF;
    {_sql(taken)};
    {_sql(beginning(iteration_id))};
END IF;
RETURN QUERY {_sql(told)};
END
"""


def _first_free(wanted: sa.Select[Any]) -> str:
    iteration_id = _given("v_iteration_id")
    return f"""FOR v_iteration_id IN {_sql(wanted)} LOOP
        {_sql(expired(iteration_id))} INTO v_batch_id;
        IF v_batch_id IS NULL THEN
            {_sql(ready(iteration_id))} INTO v_batch_id;
        END IF;
        EXIT WHEN v_batch_id IS NOT NULL;
    END LOOP;"""


def _renew() -> str:
    mine = batches.c.claim_id == sa.any_(_given("p_claim_ids"))
    return f"""BEGIN
{_LEASE_IS_SANE}
RETURN QUERY {_sql(renewing(mine, _given("p_lease_seconds")))};
END
"""


def _report() -> str:
    batch_id, claim_id, voids = _given("p_batch_id"), _given("p_claim_id"), _given("p_void_games")
    results = {name: _given(f"p_{name}") for name in REPORTED}
    counts = {name: results[name] for name in COUNTS}
    known = ", ".join(f"v_known.{name}" for name in COUNTS)
    told = ", ".join(f"p_{name}" for name in COUNTS)
    return f"""DECLARE v_iteration_id BIGINT; v_counted BIGINT; v_known RECORD;
BEGIN
{_sql(settling(batch_id, claim_id, results, voids))} INTO v_iteration_id;
IF v_iteration_id IS NOT NULL THEN
    {_sql(counting(_given("v_iteration_id"), counts, voids))} INTO v_counted;
    IF v_counted IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '{LOST}', MESSAGE = ': the iteration was abandoned';
    END IF;
    RETURN 'accepted';
END IF;
{_sql(reported_by(batch_id, claim_id))} INTO v_known;
IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '{LOST}',
        MESSAGE = ' is no longer held by claim ' || p_claim_id;
END IF;
IF ({known}) IS DISTINCT FROM ({told}) THEN
    RAISE EXCEPTION USING ERRCODE = '{CONFLICT}', MESSAGE = ': reported as '
        || ({known})::TEXT || ', and now as ' || ({told})::TEXT;
END IF;
RETURN 'already';
END
"""


def _fail() -> str:
    batch_id, claim_id, voids = _given("p_batch_id"), _given("p_claim_id"), _given("p_void_games")
    iteration = (
        sa.select(iterations.c.run_id, iterations.c.iteration_number)
        .join(batches, batches.c.iteration_id == iterations.c.id)
        .where(batches.c.id == batch_id)
    )
    event = (
        events.insert()
        .inline()
        .values(
            run_id=_given("v_run_id"),
            kind=_given("v_kind"),
            actor="worker",
            detail=_given("json_build_object('reason', v_reason)"),
        )
    )
    failed = failing(batch_id, claim_id, _given("p_reason"), voids)
    return f"""DECLARE
    v_run_id BIGINT; v_number INTEGER; v_status TEXT; v_iteration_id BIGINT; v_seq INTEGER;
    v_reason TEXT; v_kind TEXT; v_paused BIGINT;
BEGIN
{_sql(iteration)} INTO v_run_id, v_number;
PERFORM 1 FROM ({_sql(locking(_given("v_run_id")))}) AS locked;
{_sql(failed)} INTO v_status, v_iteration_id, v_seq;
IF v_status IS NULL THEN
    RETURN;
END IF;
{_sql(adding_voids(_given("v_iteration_id"), voids))};
IF v_status = '{BatchStatus.FAILED}' THEN
    v_reason := 'iteration ' || v_number || ' batch ' || v_seq || ': ' || p_reason;
    {_sql(pausing(_given("v_run_id"), _given("v_reason")))} INTO v_paused;
    v_kind := CASE WHEN v_paused IS NULL THEN 'failed' ELSE '{RunStatus.PAUSED}' END;
    {_sql(event)};
END IF;
END
"""


def _register() -> str:
    name, facts = _given("p_name"), {fact: _given(f"p_{fact}") for fact in FACTS}
    return f"""DECLARE v_id BIGINT;
BEGIN
{_sql(known_again(name, facts))} INTO v_id;
IF v_id IS NULL THEN
    {_sql(new_here(name, facts))} INTO v_id;
END IF;
RETURN v_id;
END
"""
