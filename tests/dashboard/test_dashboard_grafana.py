"""deploy/grafana.json: each of its queries runs, by a viewer's login, and so does the dashboard."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from dashboards import client_of, hostile_run

from spsa.db.connection import parse_url
from spsa.db.grants import Grant, GrantQueries, Role
from spsa.db.store import open_store

FILE = Path(__file__).resolve().parents[2] / "deploy" / "grafana.json"


@pytest.fixture
def viewer_url(postgresql_url: str) -> Iterator[str]:
    """A database with a played run, as a login of the role `viewer` reaches it."""
    with open_store(postgresql_url, durable=False) as store:
        hostile_run(store)
    user = f"viewer_{uuid.uuid4().hex[:12]}"
    with GrantQueries(postgresql_url) as queries:
        queries.grant(Grant(role=Role.VIEWER, user=user, connections=9))
    yield postgresql_url.replace("//postgres@", f"//{user}@")
    owner = sa.create_engine(parse_url(postgresql_url))
    with owner.begin() as connection:
        connection.exec_driver_sql(f"DROP OWNED BY {user}; DROP ROLE {user}")
    owner.dispose()


def queries_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (value[key] for key in ("rawSql", "query") if isinstance(value.get(key), str))
        for inner in value.values():
            yield from queries_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from queries_of(inner)


def filled(query: str) -> str:
    """As Grafana sends it, for the run "first" and the parameter "margin"."""
    start, _, column = query.partition("$__timeFilter(")
    if column:
        column, _, rest = column.partition(")")
        query = f"{start}{column} BETWEEN '2000-01-01' AND '2100-01-01'{rest}"
    return query.replace("'$run'", "'first'").replace("$parameter", "'margin'")


def test_every_query_answers(viewer_url: str) -> None:
    found = list(queries_of(json.loads(FILE.read_text())))
    assert len(found) == 10
    engine = sa.create_engine(parse_url(viewer_url))
    with engine.connect() as connection:
        for query in found:
            assert "$" not in filled(query)
            assert connection.exec_driver_sql(filled(query)).all(), query
    engine.dispose()


def test_a_viewer_sees_every_page(viewer_url: str) -> None:
    with open_store(viewer_url) as store:
        browser = client_of(store)
        for path in ("/", "/run", "/parameters", "/parameter?name=margin", "/workers"):
            assert browser.get(path).status_code == 200, path
        for path in ("/iterations", "/iteration?number=8", "/events", "/metrics", "/api/history"):
            assert browser.get(path).status_code == 200, path
