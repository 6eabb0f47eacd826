"""Changes of a run that goes on: in force from the next iteration on, and replayed to the bit."""

from dataclasses import replace

import pytest
from masters import SPACE, FakeSleep, RunUnderTest, parameter, play

from spsa.core.params import Space
from spsa.db.purge_records import Selection
from spsa.errors import IllegalTransition, InvalidInput, NothingToDo
from spsa.history.doctor import RunRows, check_run
from spsa.history.doctor.theta import changes
from spsa.history.purge import carry_out, plan, theta_at
from spsa.history.steering import Addition, Edit, change_space, plan_change
from spsa.lifecycle import RunStatus
from spsa.master.session import tuning_of
from spsa.report.history import history
from spsa.report.named_theta import named_theta

pytestmark = pytest.mark.slow_on("postgresql")

EDITS = {
    2: (Edit(name="margin", maximum=60), Edit(name="ratio", active=False)),
    4: (
        Edit(name="still", active=True),
        Edit(name="margin", step=4),
        Edit(name="ratio", active=True, minimum=0.2),
    ),
}
"""After so many results, with two more iterations in play or not opened yet."""


FRESH = Addition(parameter("fresh", value=7, maximum=20, step=2))


def change(tested, edit, reason="to see"):
    return change_space(tested.store, tested.now(), tuning_of, edit, "anna", reason)


def changed(store, algorithm):
    """A finished run of eight iterations, changed after some of its results."""
    tested = RunUnderTest(store, algorithm=algorithm, in_flight=2, iterations=8)
    left = dict(EDITS)

    def meanwhile():
        play(store)
        for edit in left.pop(tested.now().applied, ()):
            change(tested, edit)

    assert tested.master(FakeSleep(meanwhile), tick=0.0).run() is RunStatus.FINISHED
    assert left == {}
    return tested


def violations(tested):
    run = tested.now()
    return check_run(tested.store, run, tuning_of(run))


@pytest.mark.parametrize("algorithm", ["spsa", "mixture", "bspsa", "bspsas"])
def test_a_changed_run_is_replayed_to_the_bit(store, algorithm):
    tested = changed(store, algorithm)
    assert violations(tested) == []
    run, rules = tested.now(), tuning_of(tested.now())
    assert (run.changes, run.applied) == (5, 8)
    for step in store.steps(run.id)[6:]:
        theta, _ = theta_at(store, run, rules, step.k, as_applied=False)
        assert theta == step.theta_after
    told = store.events(run.id, kinds=["params"])
    assert [event.detail["number"] for event in told] == [1, 2, 3, 4, 5]


def test_what_is_changed_is_in_force_from_the_next_iteration_on(store):
    tested = changed(store, "spsa")
    first, second, _third, fourth, *_ = store.changes(tested.run.id)
    tuned = store.iterations(tested.run.id)
    frozen = second.theta_after["ratio"]
    for it in tuned:
        if it.opened_changes >= 1:
            assert max(it.plus_parameters["margin"], it.minus_parameters["margin"]) <= 60
        if 2 <= it.opened_changes < 5:
            assert it.plus_parameters["ratio"] == it.minus_parameters["ratio"] == frozen
        still = it.plus_parameters["still"] != it.minus_parameters["still"]
        assert still == (it.opened_changes >= 3)
    assert {it.opened_changes for it in tuned} == {0, 2, 5}
    assert first.theta_after["margin"] <= 60
    assert fourth.theta_before == fourth.theta_after


@pytest.mark.parametrize("algorithm", ["spsa", "mixture"])
def test_a_purge_of_results_before_a_change_is_replayed_through_it(store, algorithm):
    tested = changed(store, algorithm)
    run = tested.now()
    found = plan(store, run, tuning_of(run), Selection(iterations=(2, 7)))
    carry_out(store, tuning_of(run), found, "anna", "a sick machine")
    assert tested.now().theta != run.theta
    assert violations(tested) == []


def test_a_change_after_a_purge_is_on_the_chain_without_the_purged_results(store):
    tested = RunUnderTest(store, in_flight=1, iterations=3)
    fake_sleep = FakeSleep(lambda: play(store) if tested.now().applied < 2 else fake_sleep.set())
    tested.master(fake_sleep).run()
    run = tested.now()
    found = plan(store, run, tuning_of(run), Selection(iterations=(1,)))
    change(tested, Edit(name="margin", step=5))
    with pytest.raises(IllegalTransition, match="has changed"):
        store.purge(run.id, replace(_purge_of(found), changes=0))
    carry_out(store, tuning_of(run), found, "anna", "a sick machine")
    change(tested, Edit(name="margin", minimum=10))
    assert tested.master(FakeSleep(lambda: play(store))).run() is RunStatus.FINISHED
    assert violations(tested) == []


def _purge_of(found):
    from spsa.history.purge import _new

    return _new(found, "anna", "a sick machine")


def test_theta_outside_the_new_bounds_moves_to_them_and_the_event_says_so(store):
    tested = RunUnderTest(store)
    said = change(tested, Edit(name="margin", maximum=40), "too large")
    assert said["max"] == {"was": 100, "is": 40}
    assert said["theta"] == {"was": 50.0, "is": 40.0}
    event = store.events(tested.run.id)[-1]
    assert (event.kind, event.actor, event.detail["reason"]) == ("params", "anna", "too large")
    assert tested.now().theta == {**tested.run.theta, "margin": 40.0}
    assert tested.now().start_theta == tested.run.start_theta
    assert Space.from_json(tested.now().start_space) == SPACE


def test_a_change_on_a_run_that_moved_meanwhile_is_refused_and_planned_again(store):
    tested = RunUnderTest(store, in_flight=1)
    run = tested.now()
    planned = plan_change(run, tuning_of(run), Edit(name="margin", step=5), "anna", "")
    tested.master(FakeSleep(lambda: play(store))).run()
    with pytest.raises(IllegalTransition, match="is finished"):
        store.change_space(run.id, planned)
    store.extend(tested.name, "anna", 6)
    with pytest.raises(IllegalTransition, match="has changed since"):
        store.change_space(run.id, planned)
    change_space(store, run, tuning_of, Edit(name="margin", step=5), "anna", "")
    assert tested.master(FakeSleep(lambda: play(store))).run() is RunStatus.FINISHED
    assert violations(tested) == []


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Edit(name="margim", step=2), 'did you mean "margin"'),
        (Edit(name="margin", minimum=100), "min 100 is not less than max 100"),
        (Edit(name="margin", step=0.1), "below what rounding to 1"),
        (Edit(name="margin", maximum=60.5), "no multiple of 1"),
        (Edit(name="margin", step=400), "wider than the whole range"),
        (Edit(name="still", maximum=40), "value 50 is outside its bounds"),
    ],
)
def test_what_params_toml_could_not_say_is_refused(store, edit, words):
    tested = RunUnderTest(store)
    with pytest.raises(InvalidInput, match=words):
        change(tested, edit)
    assert tested.now() == tested.run


def test_the_last_active_parameter_is_not_frozen_and_nothing_is_not_a_change(store):
    tested = RunUnderTest(store)
    change(tested, Edit(name="ratio", active=False))
    with pytest.raises(InvalidInput, match="nothing would be tuned"):
        change(tested, Edit(name="margin", active=False))
    with pytest.raises(NothingToDo, match="already"):
        change(tested, Edit(name="ratio", active=False))


def test_a_finished_run_is_extended_and_goes_on(store):
    tested = RunUnderTest(store, iterations=2)
    assert tested.master(FakeSleep(lambda: play(store))).run() is RunStatus.FINISHED
    with pytest.raises(IllegalTransition, match="name more"):
        store.extend(tested.name, "anna", 2)
    with pytest.raises(IllegalTransition, match="it is finished"):
        store.resume(tested.name, "anna")
    store.extend(tested.name, "anna", 4)
    assert (tested.now().status, tested.now().finished_at) == (RunStatus.RUNNING, None)
    assert tested.master(FakeSleep(lambda: play(store))).run() is RunStatus.FINISHED
    assert (tested.now().applied, violations(tested)) == (4, [])


@pytest.mark.parametrize("algorithm", ["spsa", "mixture", "bspsa", "bspsas", "constant"])
def test_a_parameter_is_added_between_two_iterations_and_replayed_to_the_bit(store, algorithm):
    tested = RunUnderTest(store, algorithm=algorithm, in_flight=2, iterations=8)
    before = []

    def meanwhile():
        play(store)
        if not before and tested.now().applied == 4:
            before.append(tested.now())
            change(tested, FRESH)

    assert tested.master(FakeSleep(meanwhile), tick=0.0).run() is RunStatus.FINISHED
    assert violations(tested) == []
    run, (was,) = tested.now(), before
    assert run.start_theta == {**was.start_theta, "fresh": 7.0}
    assert run.theta["fresh"] != 7.0 and "fresh" not in was.theta
    for it in store.iterations(run.id):
        perturbed = it.plus_parameters.get("fresh") != it.minus_parameters.get("fresh")
        assert perturbed == ("fresh" in it.base_parameters) == (it.opened_changes == 1)
    blind = [it for it in store.iterations(run.id) if it.opened_changes == 0]
    assert len(blind) in (4, 5, 6)
    for k in range(9):
        theta, _ = theta_at(store, run, tuning_of(run), k, as_applied=False)
        assert theta.keys() == run.theta.keys()
        assert (theta["fresh"] == 7.0) == (k <= len(blind))
    path = next(p for p in history(store, run).parameters if p.name == "fresh")
    assert path.theta[:5] == (7.0,) * 5 and path.theta[-1] == run.theta["fresh"]
    found = plan(store, run, tuning_of(run), Selection(iterations=(2, 7)))
    carry_out(store, tuning_of(run), found, "anna", "a sick machine")
    assert violations(tested) == []


def test_what_an_added_parameter_was_at_the_start_is_checked(store):
    tested = RunUnderTest(store)
    said = change(tested, FRESH)
    assert said["added"] == {"value": 7, "min": 0, "max": 20, "step": 2, "active": True}
    assert named_theta(store, tested.now(), "start").values["fresh"] == 7
    with pytest.raises(NothingToDo, match="has the parameter fresh already"):
        change(tested, FRESH)
    with pytest.raises(InvalidInput, match="option 'margin' is that of margin already"):
        change(tested, Addition(parameter("more", option="margin")))
    assert violations(tested) == []
    run = tested.now()
    wrong = replace(run, start_theta={**run.start_theta, "fresh": 8.0})
    (found,) = changes(RunRows(wrong, [], {}, [], changes=store.changes(run.id)))
    assert "start of what change 1 added has fresh = 8.0; it is 7.0" in str(found)
