"""One fleet, one design, one window: what its slots did in it, and what that cost."""

import os
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean

from benches.fleet import lockstep, ours, processes
from benches.fleet.scene import Outcome, Scene, Span
from spsa.db import Store
from spsa.master.session import AUTO, Auto

_TICKS = os.sysconf("SC_CLK_TCK")


def of_ours(url: str, scene: Scene, server: int | None, in_flight: int | Auto = AUTO) -> Outcome:
    """What this project's design does; `server` is the process of a PostgreSQL server."""
    with ExitStack() as stack:
        store = stack.enter_context(ours.master(url, scene, in_flight))
        fleet = stack.enter_context(processes.fleet(url, scene))
        return _measured(scene, fleet, server, store)


def of_lockstep(url: str, scene: Scene, server: int | None) -> Outcome:
    """What the design does that this one grew from."""
    with ExitStack() as stack:
        stack.enter_context(lockstep.master(url, scene))
        return _measured(
            scene, stack.enter_context(processes.fleet(url, scene, lockstep.work)), server
        )


def _measured(
    scene: Scene, fleet: processes.Fleet, server: int | None, store: Store | None = None
) -> Outcome:
    fleet.await_play()
    time.sleep(scene.wait(scene.warm))
    before, first = _applied(store), time.monotonic()
    fleet_before, server_before = _processor(fleet.pids), _server(server)
    time.sleep(scene.wait(scene.seconds))
    window = first, time.monotonic()
    lasted = window[1] - window[0]
    of_fleet = _processor(fleet.pids) - fleet_before
    of_server = _server(server) - server_before
    iterations, in_flight = _iterations(store, before)
    return Outcome(
        playing=_playing(fleet, window, scene),
        database=None if server is None else of_server / lasted,
        fleet=of_fleet / lasted,
        iterations=iterations,
        in_flight=in_flight,
    )


def _playing(fleet: processes.Fleet, window: Span, scene: Scene) -> float:
    return fleet.played(window) / (scene.slots * (window[1] - window[0]))


def _applied(store: Store | None) -> int:
    return 0 if store is None else store.run(ours.NAME).applied


def _iterations(store: Store | None, before: int) -> tuple[int, float]:
    """How many were applied since, and how many were in flight when those were opened."""
    if store is None:
        return 0, 1.0
    run = store.run(ours.NAME)
    rows = [it for it in store.iterations(run.id) if before < (it.k or 0) <= run.applied]
    numbers_in_flight = [float((it.k or 0) - it.opened_on) for it in rows]
    return len(rows), fmean(numbers_in_flight) if numbers_in_flight else 0.0


def _server(pid: int | None) -> float:
    """Processor seconds of a PostgreSQL server with all its sessions."""
    if pid is None:
        return 0.0
    folders = Path("/proc").glob("[0-9]*")
    sessions = [int(folder.name) for folder in folders if _parent(int(folder.name)) == pid]
    return _processor([pid, *sessions])


def _processor(pids: list[int]) -> float:
    """Seconds that these processes, and the children they have buried, were on a processor."""
    return sum(sum(map(int, _stat(pid)[11:15])) for pid in pids) / _TICKS


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _stat(pid: int) -> list[str]:
    """What /proc says after a process's name; zeros where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["0"] * 20
