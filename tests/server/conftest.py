"""A played run, and a client of the server of its database; for all tests of a module."""

from functools import partial

import pytest
from asking import Store
from served import client_of, hostile_run, requested
from transcripts import Transcript


@pytest.fixture(scope="module")
def shared_store(shared_database_url):
    with Store(shared_database_url, durable=False) as store:
        yield store


@pytest.fixture(scope="module")
def played(shared_store):
    return hostile_run(shared_store)


@pytest.fixture(scope="module")
def browser(shared_store):
    with client_of(shared_store) as client:
        yield client


@pytest.fixture
def visit(request):
    """`visit(client, "heading")`: the requests of a situation in the text file beside the test."""

    def visited(client, heading, **names):
        file = request.path.with_suffix(".txt")
        return Transcript(partial(requested, client), file)(heading, **names)

    return visited
