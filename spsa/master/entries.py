"""The rows that the master's loop writes: a new iteration and a new step."""

from spsa.algorithms.tuning import Update
from spsa.db.store import NewIteration, NewStep, Run, RunView
from spsa.lifecycle import Purpose
from spsa.master.build_queue import QueuedBuild
from spsa.master.pacing import Pacer
from spsa.master.settings import RunSettings


def new_iteration(
    build: QueuedBuild, settings: RunSettings, pacer: Pacer, view: RunView
) -> NewIteration:
    """The iteration of a finished build; BuildFailed if the build failed."""
    proposal, sides = build.proposal, build.sides.result()
    return NewIteration(
        purpose=Purpose.TUNE,
        k=proposal.k,
        opened_on=build.opened_on,
        opened_purges=build.purges,
        in_flight=pacer.in_flight(proposal.k, build.opened_on),
        a_k=proposal.a_k,
        c_k=proposal.c_k,
        plus=sides.plus,
        minus=sides.minus,
        plus_options=sides.plus_options,
        minus_options=sides.minus_options,
        terms=settings.terms,
        target_games=settings.games_per_iteration,
        batches=pacer.batches(view),
        max_attempts=settings.max_attempts,
        base_parameters=proposal.base,
        plus_parameters=proposal.played.plus,
        minus_parameters=proposal.played.minus,
        perturbation_signs=proposal.signs,
    )


def new_step(run: Run, update: Update) -> NewStep:
    """The step that an update causes in a run."""
    return NewStep(
        k=run.applied + 1,
        theta_before=run.theta,
        delta=update.delta,
        theta_after=update.theta,
        estimates=update.estimates,
        state=update.state,
        gradient=update.gradient,
        elo=update.elo,
        bounded=update.bounded,
        purges=run.purges,
    )
