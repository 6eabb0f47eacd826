"""`exchange` as a function of a PostgreSQL server, made of the same statements.

Reports come as a JSON list of objects, claims as two arrays, of ids and of lots. It answers with a
row to each report, in their order, and then with a row for each claim that has a batch.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from spsa.lifecycle import IterationStatus
from spsa.schema import batches
from spsa.store import turns
from spsa.store.claims import Given, beginning, expired, holding, ready, taking, telling
from spsa.store.database import COUNTS
from spsa.store.plpgsql import LEASE_IS_SANE, listed, sql, typed, variable
from spsa.store.reports import REPORTED, counting, reported_by, settling

TOLD = telling(batches.c.claim_id == sa.any_(variable("p_claim_ids")))
_ANSWER = typed({column.name: column for column in TOLD.selected_columns}, prefix="")

SIGNATURE = (
    "spsa_exchange(p_reports JSON, p_claim_ids TEXT[], p_lots DOUBLE PRECISION[],"
    " p_worker_id BIGINT, p_lease_seconds DOUBLE PRECISION)"
    f" RETURNS TABLE (outcome TEXT, known INTEGER[], {_ANSWER})"
)

_SENT = {name: batches.c[name] for name in ("claim_id", "void_games", *REPORTED)}
_REPORTS = f"json_to_recordset(p_reports) AS t(batch_id BIGINT, {typed(_SENT, prefix='')})"
_OWN = (variable("v_told.batch_id"), variable("v_told.claim_id"))
_RESULTS = {name: variable(f"v_told.{name}") for name in REPORTED}
_SUMS = {name: variable(f"v_sum.{name}") for name in COUNTS}


def body() -> str:
    """The function's own words."""
    return f"""DECLARE
    v_told RECORD; v_known RECORD; v_sum RECORD; v_counted BIGINT; v_place INTEGER; v_batch BIGINT;
    v_open BIGINT[]; v_statuses TEXT[]; v_found BIGINT[];
    v_iteration_id BIGINT; v_counts_for BIGINT; v_contested BOOLEAN; v_lot DOUBLE PRECISION;
    v_settled BIGINT[] := '{{}}'; v_begun BIGINT[] := '{{}}'; v_wanted TEXT[] := '{{}}';
    v_waiting TEXT[]; v_lots DOUBLE PRECISION[] := '{{}}';
BEGIN
{LEASE_IS_SANE}
FOR v_told IN SELECT * FROM {_REPORTS} LOOP
    {_settle()}
    RETURN NEXT;
END LOOP;
FOR v_place IN 1 .. cardinality(p_claim_ids) LOOP
    {sql(holding(variable("p_claim_ids[v_place]")))} INTO v_batch;
    IF v_batch IS NULL THEN
        v_wanted := v_wanted || p_claim_ids[v_place];
        v_lots := v_lots || p_lots[v_place];
    END IF;
END LOOP;
{_take()}
IF cardinality(p_claim_ids) > 0 THEN
    RETURN QUERY SELECT NULL::TEXT, NULL::INTEGER[], told.* FROM ({sql(TOLD)}) AS told;
END IF;
{_count()}
FOREACH v_iteration_id IN ARRAY v_begun LOOP
    {sql(beginning(variable("v_iteration_id")))};
END LOOP;
END
"""  # noqa: S608


def _settle() -> str:
    known = listed(COUNTS, "v_known")
    return f"""known := NULL;
    {sql(settling(*_OWN, _RESULTS, variable("v_told.void_games")))} INTO v_iteration_id;
    IF v_iteration_id IS NOT NULL THEN
        outcome := 'accepted';
        v_settled := v_settled || v_told.batch_id;
        v_sum := v_told; v_counts_for := v_iteration_id;
    ELSE
        {sql(reported_by(*_OWN))} INTO v_known;
        IF NOT FOUND THEN
            outcome := 'lost';
        ELSE
            outcome := 'known';
            known := ARRAY[{known}];
        END IF;
    END IF;"""


def _take() -> str:
    """Where one run alone has anything all is taken at once, else each claim draws its own lot."""
    drawn = turns.playable(variable("v_lot"))
    return f"""IF cardinality(v_wanted) > 0 THEN
    SELECT array_agg(f.id), array_agg(f.status), bool_or(f.contested)
      FROM ({sql(turns.uncontested())}) AS f INTO v_open, v_statuses, v_contested;
    IF NOT v_contested THEN
        {_take_from_all()}
    END IF;
END IF;
WHILE v_contested AND cardinality(v_wanted) > 0 LOOP
    v_waiting := v_wanted[2:]; v_wanted := v_wanted[1:1];
    v_lot := v_lots[1]; v_lots := v_lots[2:];
    SELECT array_agg(f.id), array_agg(f.status) FROM ({sql(drawn)}) AS f INTO v_open, v_statuses;
    {_take_from_all()}
    EXIT WHEN cardinality(v_wanted) > 0;
    v_wanted := v_waiting;
END LOOP;"""  # noqa: S608


def _take_from_all() -> str:
    """Batches of the first open iterations that have any, for all that are wanted."""
    return f"""FOR v_place IN 1 .. coalesce(cardinality(v_open), 0) LOOP
        EXIT WHEN cardinality(v_wanted) = 0;
        v_iteration_id := v_open[v_place];
        {_take_some(expired)}
        {_take_some(ready)}
    END LOOP;"""


def _take_some(free: Callable[[Given, Given], sa.Select[Any]]) -> str:
    """The rows are found, and locked, before the first of them is changed."""
    found = free(variable("v_iteration_id"), variable("cardinality(v_wanted)"))
    lease = (variable("p_worker_id"), variable("p_lease_seconds"))
    taken = taking(variable("v_batch"), variable("v_wanted[1]"), *lease)
    return f"""IF cardinality(v_wanted) > 0 THEN
            SELECT array_agg(f.id) FROM ({sql(found)}) AS f INTO v_found;
            IF v_found IS NOT NULL THEN
                FOREACH v_batch IN ARRAY v_found LOOP
                    {sql(taken)};
                    v_wanted := v_wanted[2:];
                END LOOP;
                IF v_statuses[v_place] = '{IterationStatus.PENDING}'
                    AND v_iteration_id <> ALL (v_begun)
                THEN
                    v_begun := v_begun || v_iteration_id;
                END IF;
            END IF;
        END IF;"""  # noqa: S608


def _count() -> str:
    """All of one iteration together, and last, so that others wait as short as may be."""
    sums = ", ".join(f"sum(t.{name})::INTEGER AS {name}" for name in (*COUNTS, "void_games"))
    iteration_id = "spsa_batch.iteration_id"
    return f"""IF cardinality(v_settled) = 1 THEN
    v_iteration_id := v_counts_for;
    {_count_one()}
ELSIF cardinality(v_settled) > 1 THEN
    FOR v_sum IN
        SELECT {iteration_id}, {sums} FROM spsa_batch JOIN {_REPORTS} ON t.batch_id = spsa_batch.id
         WHERE spsa_batch.id = ANY (v_settled) GROUP BY {iteration_id} ORDER BY {iteration_id}
    LOOP
        v_iteration_id := v_sum.iteration_id;
        {_count_one()}
    END LOOP;
END IF;"""  # noqa: S608


def _count_one() -> str:
    counted = counting(variable("v_iteration_id"), _SUMS, variable("v_sum.void_games"))
    return f"""{sql(counted)} INTO v_counted;
        IF v_counted IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = '23000',
                MESSAGE = 'iteration row ' || v_iteration_id || ' was abandoned meanwhile';
        END IF;"""
