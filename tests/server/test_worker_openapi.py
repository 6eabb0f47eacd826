"""The description of the requests: what the server says, and what schemathesis makes of it."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from attacks import Scene, Sender, scene
from builders import Stage, stage
from hypothesis import HealthCheck, settings
from invariants import broken
from served import serving
from shell import Shell

from spsa.db import Store
from spsa.server.worker_api import openapi

LONG = bool(os.environ.get("SPSA_TEST_LONG"))
REFUSALS = [400, 401, 403, 404, 405, 409, 413, 422, 426, 429]
CONFIG = {
    "checks": {
        "negative_data_rejection": {"expected-statuses": REFUSALS},
        # values have limits that JSON Schema cannot say, and who guesses tokens has to wait
        "positive_data_acceptance": {"enabled": False},
        "ignored_auth": {"enabled": False},
    }
}
api = schemathesis.openapi.from_dict(
    dict(openapi()), config=schemathesis.config.SchemathesisConfig.from_dict(CONFIG)
)


@pytest.fixture(scope="module")
def run(shared_store: Store, shared_database_url: str) -> Iterator[Scene]:
    staged: Stage = stage(shared_store, max_iterations=1_000)
    shell = Shell(shared_database_url)
    with serving(shared_store) as url, scene(staged, url, shell) as found:
        yield found
        assert broken(shell) == []
        found.go_on()
    shell.close()


@pytest.mark.slow
@api.parametrize()
@settings(
    max_examples=2_000 if LONG else 10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_no_request_makes_the_server_fail_or_count_what_was_not_played(
    case: Any, run: Scene
) -> None:
    before = run.counts()
    case.call_and_validate(
        base_url=run.url,
        headers={"Authorization": f"Bearer {run.bad.token}"},
    )
    assert run.counts() == before


def test_the_description_is_what_the_server_says(run: Scene) -> None:
    assert Sender(run.url).get("/worker/openapi.json").json == openapi()
