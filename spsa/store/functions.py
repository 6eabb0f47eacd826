"""What a worker does, as functions of a PostgreSQL server: one call, one round trip, one commit.

Each is made from the very statements that `claims`, `reports` and `roster` run one by one on
SQLite, so that no guard is spelled twice. They belong to who owns the tables and run as that role:
a login that may call them and nothing else can claim and report and nothing else. Migrations make
them; one that changes a statement of theirs has to make them anew.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from spsa.lifecycle import BatchStatus, RunStatus
from spsa.schema import batches, events, iterations, workers
from spsa.store import exchange_function
from spsa.store.claims import bytes_of, renewing, unfinished
from spsa.store.halting import locking, pausing
from spsa.store.plpgsql import LEASE_IS_SANE, sql, typed, variable
from spsa.store.reports import adding_voids, failing, releasing
from spsa.store.roster import FACTS, alive, known_again, new_here


def statements(schema: str) -> Iterator[str]:
    """Everything that makes the functions in a schema, for its owner alone to call."""
    for signature, body in _functions().items():
        name, _, returns = signature.partition(") ")
        yield (
            f"CREATE OR REPLACE FUNCTION {name}) {returns} LANGUAGE plpgsql SECURITY DEFINER"
            f" SET search_path = {schema}, pg_temp SET plan_cache_mode = force_generic_plan"
            " AS $body$\n#variable_conflict use_column\n"
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


def _functions() -> dict[str, str]:
    """Signature -> body of each function."""
    facts = typed({name: workers.c[name] for name in FACTS})
    return {
        exchange_function.SIGNATURE: exchange_function.body(),
        "spsa_renew(p_claim_ids TEXT[], p_lease_seconds DOUBLE PRECISION) RETURNS SETOF TEXT": (
            _renew()
        ),
        "spsa_release(p_batch_id BIGINT, p_claim_id TEXT) RETURNS VOID": _only(
            releasing(variable("p_batch_id"), variable("p_claim_id"))
        ),
        "spsa_fail(p_batch_id BIGINT, p_claim_id TEXT, p_reason TEXT, p_void_games INTEGER)"
        " RETURNS VOID": _fail(),
        f"spsa_register_worker(p_name TEXT, {facts}) RETURNS BIGINT": _register(),
        "spsa_touch_worker(p_worker_id BIGINT, p_nps DOUBLE PRECISION) RETURNS VOID": _only(
            alive(variable("p_worker_id"), variable("p_nps"))
        ),
        "spsa_engine_bytes(p_sha256 TEXT) RETURNS BYTEA": _answer(bytes_of(variable("p_sha256"))),
        "spsa_work_left() RETURNS BOOLEAN": _answer(unfinished()),
    }


def _only(statement: sa.ClauseElement) -> str:
    return f"BEGIN\n{sql(statement)};\nEND\n"


def _answer(statement: sa.Select[Any]) -> str:
    return f"BEGIN\nRETURN ({sql(statement)});\nEND\n"


def _renew() -> str:
    mine = batches.c.claim_id == sa.any_(variable("p_claim_ids"))
    return f"""BEGIN
{LEASE_IS_SANE}
RETURN QUERY {sql(renewing(mine, variable("p_lease_seconds")))};
END
"""


def _fail() -> str:
    batch_id, claim_id = variable("p_batch_id"), variable("p_claim_id")
    voids = variable("p_void_games")
    iteration = (
        sa.select(iterations.c.run_id, iterations.c.iteration_number)
        .join(batches, batches.c.iteration_id == iterations.c.id)
        .where(batches.c.id == batch_id)
    )
    event = (
        events.insert()
        .inline()
        .values(
            run_id=variable("v_run_id"),
            kind=variable("v_kind"),
            actor="worker",
            detail=variable("json_build_object('reason', v_reason)"),
        )
    )
    failed = failing(batch_id, claim_id, variable("p_reason"), voids)
    return f"""DECLARE
    v_run_id BIGINT; v_number INTEGER; v_status TEXT; v_iteration_id BIGINT; v_seq INTEGER;
    v_reason TEXT; v_kind TEXT; v_paused BIGINT;
BEGIN
{sql(iteration)} INTO v_run_id, v_number;
PERFORM 1 FROM ({sql(locking(variable("v_run_id")))}) AS locked;
{sql(failed)} INTO v_status, v_iteration_id, v_seq;
IF v_status IS NULL THEN
    RETURN;
END IF;
{sql(adding_voids(variable("v_iteration_id"), voids))};
IF v_status = '{BatchStatus.FAILED}' THEN
    v_reason := 'iteration ' || v_number || ' batch ' || v_seq || ': ' || p_reason;
    {sql(pausing(variable("v_run_id"), variable("v_reason")))} INTO v_paused;
    v_kind := CASE WHEN v_paused IS NULL THEN 'failed' ELSE '{RunStatus.PAUSED}' END;
    {sql(event)};
END IF;
END
"""


def _register() -> str:
    name, facts = variable("p_name"), {fact: variable(f"p_{fact}") for fact in FACTS}
    return f"""DECLARE v_id BIGINT;
BEGIN
{sql(known_again(name, facts))} INTO v_id;
IF v_id IS NULL THEN
    {sql(new_here(name, facts))} INTO v_id;
END IF;
RETURN v_id;
END
"""
