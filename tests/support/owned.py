"""A run as its owner has it: half done, measured twice, with a worker that spoils games."""

from contextlib import closing
from dataclasses import replace

from asking import Store
from builders import Stage, new_worker, space_from, stage
from shell import Shell

from spsa.protocol import KeptVoid

_PARAMETERS = {
    "rook_value_opening": (560, 280, 1500, 80),
    "rook_value_endgame": (700, 350, 1700, 90),
    "bishop_value_opening": (420, 210, 1100, 60),
    "quiescence_delta_margin": (-160, -320, 600, 75),
    "null_move_reduction": (2, 1, 4, 1),
    "late_moves_depth_1": (3, 1, 24, 1.5),
    "late_moves_depth_2": (4, 1, 32, 2),
    "razor_margin": (300, 0, 900, 40),
}
_FROZEN = "[tempo]\nvalue = 12\nmin = 0\nmax = 40\nstep = 4\nactive = false\n"
_GAMES = 200
_SPREAD = """UPDATE spsa_batch SET reported_at = strftime('%Y-%m-%d %H:%M:%f', 'now',
    '-' || (((SELECT max(id) FROM spsa_batch) - id) * 3) || ' seconds')"""
"""Batches are reported three seconds apart, of SQLite."""


def owned(store: Store) -> Stage:
    """The run "rook": 40 of 60 results, two matches, three machines of which `attic` is bad.

    An earlier run, "draft", was stopped.
    """
    text = "".join(
        f"[{name}]\nvalue = {value}\nmin = {low}\nmax = {high}\nstep = {step}\n"
        for name, (value, low, high, step) in _PARAMETERS.items()
    )
    stage(store, space_from(text), 12, games=_GAMES, name="draft", planned=20).validate(games=400)
    store.stop("draft", "owner", "wider bounds")
    first = stage(store, space_from(text + _FROZEN), 0, games=_GAMES, name="rook", planned=60)
    workers = {
        name: store.register_worker(new_worker(f"{name}-1", host=name, concurrency=slots))
        for name, slots in (("desk", 4), ("server", 16), ("attic", 2))
    }
    for k in range(40):
        host = ("server", "server", "desk", "attic")[k % 4]
        played = replace(first, worker=workers[host])
        kept = KeptVoid(pair=k, culprit="plus", white="", detail="crash", position="", output="")
        counts = {"voids": {"crash of plus": 2}, "plus_time_losses": 1}
        spoilt = {**counts, "kept_voids": (kept,)} if host == "attic" else {}
        played.iterate(**spoilt)
        if k in (19, 39):
            replace(first, worker=workers["server"]).validate(games=1000)
    with closing(Shell(store.where)) as sql:
        sql(_SPREAD)
        sql("UPDATE spsa_run SET created_at = (SELECT min(reported_at) FROM spsa_batch)")
    return first
