"""What the tests of the dashboard share: a played run with hostile names."""

from collections.abc import Iterator
from contextlib import contextmanager
from socket import create_server
from threading import Thread

import uvicorn
from builders import Stage, new_worker, result_of
from starlette.testclient import TestClient
from tuned import tuned, validated

from spsa.core.params import Space
from spsa.core.params.parameter import Parameter
from spsa.core.params.placement import Constant, Location
from spsa.dashboard.app import application
from spsa.dashboard.guard import Token
from spsa.db.store import Store

HOSTILE = "<img src=x onerror=alert(1)>&\"'{{7*7}}"


def space(count: int = 2) -> Space:
    """`margin`, a parameter with a hostile name, and more up to `count`."""
    names = ["margin", HOSTILE, *(f"extra{i}" for i in range(2, count))]
    return Space(
        tuple(
            Parameter(
                name=name,
                value=200.0,
                minimum=0.0,
                maximum=1000.0,
                step=20.0,
                group="search" if i % 2 else "",
                place=Constant(Location.parse(f"PLACE_{i}")),
                option=f"Option{i}",
            )
            for i, name in enumerate(names[:count])
        )
    )


def hostile_run(store: Store) -> Stage:
    """The run "first": six results, a validation, an open iteration, and a hostile worker.

    Iteration 7 is the validation; one of the two batches of iteration 8 is played.
    """
    staged = tuned(store, space(), 6)
    validated(staged, games=40)
    store.extend(staged.run.name, "owner", 10)
    store.pause(staged.run.name, HOSTILE, "postgresql://spsa:geheim@db/x is slow")
    store.resume(staged.run.name, "owner")
    staged.open()
    worker = store.register_worker(new_worker(HOSTILE, host="evil"))
    claim = store.claim("hostile-claim", worker, 1000.0)
    assert claim is not None
    store.report(claim, result_of(claim, voids={HOSTILE: 2}, plus_time_losses=1))
    return staged


def client_of(
    store: Store, token: str | None = None, base_url: str = "http://localhost"
) -> TestClient:
    """A client of a dashboard, which is closed as a context manager."""
    app = application(store, None if token is None else Token(token))
    return TestClient(app, base_url=base_url, follow_redirects=False)


@contextmanager
def serving(store: Store) -> Iterator[str]:
    """The address of a dashboard that answers over HTTP while this lasts."""
    listener = create_server(("127.0.0.1", 0))
    running = uvicorn.Server(uvicorn.Config(application(store, None), log_level="error"))
    thread = Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join()
        listener.close()
