"""Starts a run where another one was: with its theta, and with what its rule knew."""

from dataclasses import dataclass, replace

from spsa.config import Config
from spsa.core.params import Parameter, Space
from spsa.db.store import Run, Store, Values
from spsa.errors import NothingToDo
from spsa.history.purge import results_of
from spsa.history.replay import Moment, in_force, replay
from spsa.master.delivery_setup import delivery_of
from spsa.master.start import checked_space, run_from, settings_from, tuning_from, tuning_of
from spsa.text import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A run to start as a copy of `parent` after its result `k`; None: after the last one.

    `doubt` is how much wider than the parent's the deviations of the rule are, at least 1.
    """

    parent: Run
    k: int | None
    name: str
    doubt: float
    seed: int | None = None


def fork_run(config: Config, store: Store, wanted: Fork, actor: str) -> tuple[Run, tuple[str, ...]]:
    """Create the run that the files describe, from the parent's theta; and notes for the user.

    Parameters that the parent did not have start from the values of params.toml. What the rule knew
    goes along if both runs have the same rule; else only theta does.

    Raises:
        InvalidInput: the files are wrong.
        NothingToDo: the parent has fewer results.
        IllegalTransition: a run of this name exists.
    """
    parent = wanted.parent
    k = parent.applied if wanted.k is None else wanted.k
    space = checked_space(config)
    moment = moment_at(store, parent, k)
    theta = parent.whole(moment.theta)
    start = Space(tuple(_at(p, theta) for p in space.parameters), space.constraints)
    rules = tuning_from(config, start, wanted.seed)
    same_rule = config.algorithm == parent.algorithm
    if same_rule:
        before = in_force(tuning_of(parent), store.changes(parent.id))[moment.changes]
        rules = rules.forked(before, moment.state, wanted.doubt)
    else:
        rules = replace(rules, begun=rules.start())
    delivery, notes = delivery_of(config, start, settings_from(config).delivery, None)
    detail = {"of": parent.name, "at": k, "doubt": wanted.doubt, "knows": same_rule}
    run = store.fork_run(run_from(config, rules, delivery, wanted.name), actor, detail)
    return run, (*_notes(parent, config, start, theta), *notes)


def moment_at(store: Store, run: Run, k: int) -> Moment:
    """Theta and the rule's state after the result k, by the games that count now.

    Raises:
        NothingToDo: the run has fewer results.
    """
    if k > run.applied:
        raise NothingToDo(
            f"run {run.name} has {plural(run.applied, 'result')}, so no theta of k={k}"
        )
    if k == run.applied:
        return Moment(k, run.theta, run.state, changes=run.changes)
    results, changes = results_of(store, run, k), store.changes(run.id)
    *_, last = replay(tuning_of(run), results, changes=changes)
    return last


def _at(parameter: Parameter, theta: Values) -> Parameter:
    """The parameter with the parent's value, inside the bounds that it has now."""
    value = theta.get(parameter.name, parameter.value)
    return replace(parameter, value=min(max(value, parameter.minimum), parameter.maximum))


def _notes(parent: Run, config: Config, space: Space, theta: Values) -> tuple[str, ...]:
    """How the fork differs from its parent."""
    notes = []
    if config.algorithm != parent.algorithm:
        notes.append(
            f"the rule of {parent.name} is {parent.algorithm}, not {config.algorithm}: the fork "
            "has its theta and nothing else"
        )
    names = {p.name for p in space.parameters}
    notes += [f"{name} is new; it starts from params.toml" for name in sorted(names - theta.keys())]
    notes += [f"{name} is not tuned any more" for name in sorted(theta.keys() - names)]
    notes += [
        f"{p.name} was {theta[p.name]:.12g}, its bounds now begin or end at {p.value:.12g}"
        for p in space.parameters
        if p.name in theta and theta[p.name] != p.value
    ]
    return tuple(notes)
