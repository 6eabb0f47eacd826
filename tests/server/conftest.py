"""A played run, and a client of the server of its database; for all tests of a module."""

from collections.abc import Iterator

import pytest
from asking import Store
from builders import Stage
from served import client_of, hostile_run
from starlette.testclient import TestClient


@pytest.fixture(scope="module")
def shared_store(shared_database_url: str) -> Iterator[Store]:
    with Store(shared_database_url, durable=False) as store:
        yield store


@pytest.fixture(scope="module")
def played(shared_store: Store) -> Stage:
    return hostile_run(shared_store)


@pytest.fixture(scope="module")
def browser(shared_store: Store) -> Iterator[TestClient]:
    with client_of(shared_store) as client:
        yield client
