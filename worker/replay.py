"""`compete --replay`: plays a batch of a run again, from its row in the database.

The row decides openings, times, their scale, and engines. At fixed nodes or depth the moves are the
same on every machine, so the counts have to be those of the report. This needs the database itself:
a server gives a machine only what it has claimed.
"""

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial

import click

from spsa.core.scoring import Tally
from spsa.errors import TuningError
from spsa.output import echo
from spsa.protocol import BatchResult, Claim
from spsa.text import printable
from spsa.uci.spawning import EngineLimits
from worker.batches.service import job_maker
from worker.direct import opened, private_url
from worker.match import pgn_writer
from worker.runner.game import Pair
from worker.runner.loop import INTERRUPTED, Interrupts, JobList
from worker.runner.pool import Job, PairVoid, Pool
from worker.settings import Settings

_PLACE = re.compile(r"(?:(.+)/)?(\d{1,9})\.(\d{1,9})(?::(\d{1,9}))?", re.ASCII)


def place_of(text: str) -> tuple[str | None, int, int, int | None]:
    """Run (None: the newest), iteration, batch and pair (None: all) of a place.

    It is [RUN/]ITERATION.BATCH[:PAIR], numbered as in a worker's log: the pair is one of the run.
    """
    if (found := _PLACE.fullmatch(text)) is None:
        raise click.BadParameter(
            f"'{printable(text, 80)}' is not [RUN/]ITERATION.BATCH[:PAIR], as in main/12.3:1",
            param_hint="--replay",
        )
    run, iteration, batch, pair = found.groups()
    return run, int(iteration), int(batch), None if pair is None else int(pair)


def replay(place: str, settings: Settings, limits: EngineLimits) -> int:
    """Play it again and say how it compares; the exit code is 1 where counts differ that must not.

    Raises NothingToDo: there is no such run or batch. TuningError: this machine lacks an engine of
    it.
    """
    url = private_url(settings.database_url, settings.database_url_file)
    run, iteration, batch, pair = place_of(place)
    received = Interrupts().of_this_process()
    with closing(opened(url, lambda: bool(received.count))) as store:
        claim, reported, scale = store.played_batch(store.run(run).id, iteration, batch)
        job = _part(job_maker(settings, store).job(claim), pair).scaled(scale)
        echo(f"{claim.run_name} iteration {iteration}, batch {batch}:")
        with (
            pgn_writer(settings.pgn, "plus", "minus", job.settings.time_control) as write,
            Pool(job.slots, limits) as pool,
        ):
            loop = JobList(iter([job]), pool, received, partial(_told, write))
            loop.play()
    if loop.failure is not None:
        raise TuningError(f"the batch cannot be played: {loop.failure}")
    if received.count:
        return INTERRUPTED
    return 0 if pair is not None else _compared(loop.played.tally, reported, claim)


def _part(job: Job, pair: int | None) -> Job:
    """The job of the whole batch, or of one of its pairs."""
    if pair is None:
        return job
    numbers = [pairing.number + 1 for pairing in job.pairings]
    if pair not in numbers:
        found = f"the batch has pairs {numbers[0]} to {numbers[-1]}, not {pair}"
        raise click.BadParameter(found, param_hint="--replay")
    return replace(job, pairings=(job.pairings[numbers.index(pair)],))


def _told(write: Callable[[Pair], None], event: Pair | PairVoid, _played: BatchResult) -> bool:
    """Write down a pair; no pair decides anything."""
    number = event.pairing.number + 1
    if isinstance(event, PairVoid):
        echo(f"  pair {number} void: {event.fault}")
        return False
    write(event)
    echo(f"  pair {number}: {_results(event.tally)}")
    return False


def _compared(tally: Tally, reported: Tally | None, claim: Claim) -> int:
    if tally == reported:
        echo(f"now {_results(tally)}, as it was reported")
        return 0
    before = "not reported yet" if reported is None else f"reported as {_results(reported)}"
    echo(f"now {_results(tally)}; it was {before}")
    return int(reported is not None and claim.game_settings.time_control.reproducible)


def _results(tally: Tally) -> str:
    return f"+{tally.wins} -{tally.losses} ={tally.draws} for plus"
