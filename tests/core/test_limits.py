"""The limits of the protocol's values: in Python, in JSON, and as CHECKs of the tables.

Whatever a worker sends is a value within its limits or refused in one sentence with the field.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from builders import new_worker, result_of, stage
from golden import compare_cases
from shell import Shell

from spsa import protocol
from spsa.core import json_values
from spsa.core.scoring import Tally
from spsa.errors import OutOfRange

SHA256 = "0123456789abcdef" * 4
KEPT = protocol.KeptVoid(
    pair=7, culprit="plus", white="", detail="a\nb", position="", output="\x1b"
)
FILE = protocol.BuiltFile(sha256=SHA256, size=1, bench=5)
HELD: Mapping[str, Any] = {"worker_id": 1, "batch_id": 2, "claim_id": "c"}
BUILD: Mapping[str, Any] = {"worker_id": 1, "build_id": 2, "claim_id": "c"}
RESULT = protocol.BatchResult(
    tally=Tally(1, 1, 2, (0, 0, 2, 0, 0)), voids={"crash": 2}, slot=0, kept_voids=(KEPT,)
)
VALUES = (
    new_worker(provides=("linux",), only_runs=("first",), sandbox="landlock"),
    protocol.Touch(worker_id=1, nps=1e6, scale=1.5),
    protocol.ClaimRequest(worker_id=1, claim_id="c", lease_seconds=60.0),
    protocol.RenewRequest(worker_id=1, claim_ids=("c", "d"), lease_seconds=60.0),
    protocol.HeldClaim(**HELD),
    RESULT,
    protocol.Failure(reason="why", void_games=1, sha256=SHA256, kept_voids=(KEPT,)),
    protocol.BuildResult(
        **BUILD, target="x", requires=("linux",), plus=FILE, minus=replace(FILE, size=9)
    ),
    protocol.BuildReturn(**BUILD, reason="why"),
    protocol.BuildRenewal(**BUILD, lease_seconds=60.0),
    protocol.BuildClaim(worker_id=1, claim_id="c", lease_seconds=60.0),
)
"""One of every value that a worker sends, with every field given."""

NUMBER_TYPES = (None, True, "5", [5], {}, nan, inf, -inf, 2**64, -(2**64), 10**400)
TEXT_TYPES = (None, True, 5, ["x"], {}, "\ud800", "a\ud800b")


def paths(data, path=()):
    """Every place in some JSON with what stands there."""
    yield path, data
    for key, part in data.items() if isinstance(data, dict) else ():
        yield from paths(part, (*path, key))
    for i, part in enumerate(data if isinstance(data, list) else ()):
        yield from paths(part, (*path, i))


def with_part(data, path, part):
    """A copy of some JSON with another part at one place."""
    if not path:
        return part
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[path[0]] = with_part(data[path[0]], path[1:], part)
    return copy


OPTIONAL = {"nps", "scale", "sandbox", "slot", "sha256", "bench", "reason"}
"""Fields that may be null, in some of the values."""


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_another_type_is_refused_at_every_place(value):
    kind, data = type(value), json_values.to_json(value)
    tried = 0
    for path, part in paths(data):
        if isinstance(part, str):
            odd = TEXT_TYPES
        elif isinstance(part, int | float):
            odd = NUMBER_TYPES
        else:
            odd = (None, True, 5, "x", {} if isinstance(part, list) else [])
        for wrong in odd:
            if wrong is None and path and path[-1] in OPTIONAL:
                continue
            if isinstance(wrong, str) and path and path[-1] in ("detail", "position", "output"):
                wrong = wrong or "\ud800"
            tried += 1
            with pytest.raises(OutOfRange) as refused:
                json_values.from_json(kind, with_part(data, path, wrong))
            sentence = str(refused.value)
            assert sentence.isprintable() and len(sentence) < 300, sentence
            assert kind.__name__ in sentence
    assert tried > 10


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_is_the_same_after_json_and_unknown_and_missing_fields_are_refused(value):
    kind, data = type(value), json_values.to_json(value)
    assert json_values.from_json(kind, json.loads(json.dumps(data))) == value
    assert json_values.checked(value) is value
    for name in ("", "x" * 10**6, "claim_ID", "\ud800", "__class__"):
        with pytest.raises(OutOfRange, match=f"{kind.__name__} has an unknown field"):
            json_values.from_json(kind, {**data, name: 1})
    needed = 0
    for name in data:
        rest = {other: part for other, part in data.items() if other != name}
        try:
            json_values.from_json(kind, rest)
        except OutOfRange as refused:
            assert str(refused) == f"{kind.__name__} lacks the field {name}"
            needed += 1
    assert needed


def test_a_result_that_no_games_have_is_refused_with_what_was_found():
    def shown(files):
        with pytest.raises(OutOfRange) as refused:
            json_values.from_json(
                protocol.BatchResult, {**json_values.to_json(RESULT), **json.loads(files["result"])}
            )
        return [str(refused.value)]

    compare_cases(Path(__file__).with_name("limits.txt"), shown)


MOST = protocol.MAX_NODES_OF_BATCH
LIMITS: list[tuple[json_values.Limit, tuple[Any, ...], tuple[Any, ...]]] = [
    (json_values.Range(0, 100), (0, 100), (-1, 101)),
    (json_values.Range(0, MOST), (0, MOST), (-1, MOST + 1)),
    (
        json_values.Range(0, 1000, measured=True),
        (0.0, json_values.LEAST_MEASURED, 1000.0),
        (-1e-9, 1e-310, json_values.LEAST_MEASURED / 2, 1000.1),
    ),
    (json_values.Text(1, 5), ("x", "xxxxx", "♜♜♜♜♜"), ("", "xxxxxx", "♜" * 6)),
    (json_values.HASH, (SHA256,), (SHA256[1:], SHA256 + "0", "g" * 64, SHA256.upper())),
]


@pytest.mark.parametrize(("limit", "right", "wrong"), LIMITS)
def test_a_limit_is_the_same_in_python_and_in_both_databases(
    limit, right, wrong, shared_database_url
):
    shell = Shell(shared_database_url)
    kind = {int: "BIGINT", float: "DOUBLE PRECISION", str: "TEXT"}[type(right[0])]
    condition = limit.condition(f"CAST(:value AS {kind})")
    for value in (*right, *wrong):
        ((holds,),) = shell(f"SELECT {condition}", value=value)
        assert bool(holds) == (value in right), value
        assert (limit.refusal(value) is None) == (value in right), value
    shell.close()


def test_a_result_of_more_or_fewer_games_than_the_batch_has_is_refused(store):
    run = stage(store)
    run.open()
    claim = run.claim("a")
    for pairs in (1, 3):
        tally = Tally(0, 0, 2 * pairs, (0, 0, pairs, 0, 0))
        with pytest.raises(OutOfRange, match=f"has {2 * pairs} games; the batch has 4"):
            run.store.report(claim, protocol.BatchResult(tally=tally))
    assert run.store.report(claim, result_of(claim)) == "accepted"
