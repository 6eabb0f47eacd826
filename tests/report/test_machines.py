"""Machines that stand out: published examples, simulated fleets, and what is done about them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import new_worker, space_from, stage
from fuzzing import LONG
from golden import compare_cases
from served import client_of

from spsa.core.scoring import Tally
from spsa.db.read_queries import WorkerShare
from spsa.protocol import BatchResult
from spsa.report import workers
from spsa.report.alarms import look
from spsa.report.events import AlarmKind
from spsa.report.report import REPORT, report
from spsa.report.run_watch import set_aside
from spsa.report.table import record
from spsa.report.workers import (
    cochran_mantel_haenszel,
    compared_machines,
    exact_chance,
    machine_reports,
)

UCB = [  # admitted and rejected of men, then of women, in the six departments
    ((512, 313), (89, 19)),
    ((353, 207), (17, 8)),
    ((120, 205), (202, 391)),
    ((138, 279), (131, 244)),
    ((53, 138), (94, 299)),
    ((22, 351), (24, 317)),
]


def test_the_statistic_of_the_admissions_to_berkeley():
    """Bickel, Hammel & O'Connell 1975; mantelhaen.test of R says 1.5246 without correction."""
    men, women = np.array(UCB, dtype=float).transpose(1, 0, 2)
    assert cochran_mantel_haenszel(men, women) == pytest.approx((1.5246, 0.2169), abs=1e-4)


def test_the_exact_chance_is_fishers():
    """The lady tasting tea guessed all of four cups, or three (Fisher 1935): 1/70 and 17/70."""
    for right, chance in ((4.0, 1 / 70), (3.0, 17 / 70)):
        said_milk, said_tea = np.array([[4 - right, right]]), np.array([[right, 4 - right]])
        assert exact_chance(said_milk, said_tea) == pytest.approx(chance)
    both = exact_chance(np.array([[0.0, 4.0]] * 2), np.array([[4.0, 0.0]] * 2))
    assert both == pytest.approx(1 / 70**2), "two groups"
    alone = np.array([[3.0, 2.0], [0.0, 0.0]])
    assert exact_chance(alone, alone[::-1]) == pytest.approx(1.0), "nobody to compare with"


def part(machine, group=0, pairs=(0, 0, 9, 0, 0), batches=1, nps=1e6, **faults):
    ll, ld, even, wd, ww = (int(n) for n in pairs)
    voids, late = faults.get("voids", 0), faults.get("late", 0)
    return WorkerShare(
        worker=f"{machine}-1",
        machine=machine,
        batches=batches,
        tally=Tally(2 * ww + wd, 2 * ll + ld, ld + wd + 2 * even, (ll, ld, even, wd, ww)),
        void_games=voids,
        time_losses=late,
        nodes=round(nps),
        seconds=1.0,
        think_seconds=1.0,
        group=group,
        void_batches=voids,
        late_batches=late,
    )


def chances(elo):
    """Of the five results of a pair; the larger the difference, the more pairs are decided."""
    score, draws = 1 / (1 + 10 ** (-elo / 400)), 0.5
    draws = min(draws, 2 * min(score, 1 - score))
    game = np.array([1 - score - draws / 2, draws, score - draws / 2])
    return list(np.convolve(game, game))


def fleet(seed, sick="", machines=8):
    """Machines that come and go, in a run whose engines become more alike.

    Some values of the parameters crash or slow down the engine, on whichever machine plays them.
    `sick` says what is wrong with machine m9.
    """
    rng, groups = np.random.default_rng(seed), 40
    begins = rng.integers(0, groups // 2, machines) * (rng.random(machines) < 0.5)
    begins[0] = 0
    found = []
    for group in range(groups):
        elo = rng.normal(0.0, 150.0 * 0.95**group)
        usual = {one: 0.3 if rng.random() < 0.05 else 0.005 for one in ("voids", "late")}
        for i in np.flatnonzero(begins <= group):
            batches, its = int(rng.integers(1, 5)), sick if i == 0 else ""
            spread = [0.25, 0.0, 0.5, 0.0, 0.25] if its == "results" else chances(elo)
            faults = {
                one: int(rng.binomial(batches, 0.4 if its == one else chance))
                for one, chance in usual.items()
            }
            pairs, nps = rng.multinomial(8 * batches, spread), float(rng.normal(1e6, 1e5))
            found.append(part(f"m{i or 9}", group, pairs, batches=batches, nps=nps, **faults))
    return found


def out(parts):
    return [report.machine for report in machine_reports(parts) if report.alarms]


@pytest.mark.long
@pytest.mark.slow
def test_equal_machines_stand_out_in_less_than_one_run_of_a_hundred():
    """Each run is looked at eight times."""
    rng, runs = np.random.default_rng(7), 2000 if LONG else 200
    alarmed = 0
    for _ in range(runs):
        parts = fleet(rng)
        alarmed += any(out([p for p in parts if p.group < seen]) for seen in range(5, 41, 5))
    assert alarmed < runs / 100


@pytest.mark.parametrize(
    ("sick", "kind"), [("results", "results"), ("voids", "voids"), ("late", "time_losses")]
)
@pytest.mark.parametrize("machines", [4, 8])
def test_the_sick_one_stands_out_and_no_other(sick, kind, machines):
    rng = np.random.default_rng(3)
    found = [machine_reports(fleet(rng, sick, machines)) for _ in range(20)]
    names = [[one.machine for one in reports if one.is_suspect] for reports in found]
    assert names.count(["m9"]) >= 19 and all(name[:1] in ([], ["m9"]) for name in names)
    alarms = [alarm for reports in found for one in reports for alarm in one.alarms]
    assert {alarm.kind for alarm in alarms} == {f"worker_{kind}"}
    assert "purge --run NAME --host m9" in alarms[0].advice


def test_what_stands_out_beside_three_machines_and_why():
    """Of pairs that are even or won by two; of a thousand batches, as many as each other has."""

    def shown(files):
        for kind, row in files.items():
            own, second, usual = map(int, row.split())
            mine, theirs = {"batches": own, kind: second}, {"batches": 1000, kind: usual}
            if kind == "pairs":
                mine, theirs = {kind: (0, 0, own, 0, second)}, {kind: (0, 0, 500, 0, 500)}
            parts = [part("m0", **mine), *(part(f"m{i}", **theirs) for i in (1, 2, 3))]
            found = [one for one in machine_reports(parts) if one.alarms]
            yield from (f"{one.machine}: {one.reason}" for one in found)

    compare_cases(Path(__file__).with_name("machines.txt"), shown)


def test_of_two_machines_nobody_can_tell_whose_results_are_wrong():
    assert out(fleet(3, "results", machines=2)) == []
    assert out(fleet(3, "voids", machines=2)) == ["m9"], "but which one spoils games"
    assert machine_reports([]) == () and out(fleet(3, machines=1)) == []
    both = part("m0", batches=40, voids=20, late=20), part("m1", batches=1000)
    assert [one.kind for one in machine_reports(both)[0].alarms] == [
        AlarmKind.WORKER_VOIDS,
        AlarmKind.WORKER_TIME_LOSSES,
    ], "as unlikely as one another"


def test_a_slow_machine_is_shown_and_not_suspected():
    parts = [part(f"m{i}", nps=nps) for i, nps in enumerate([1e6, 9e5, 4e5])]
    unknown = part("m3", nps=0.0), replace(part("m4"), think_seconds=0.0)
    most = part("m5", pairs=(0, 0, 10, 0, 0), nps=9e5)
    slow, first, *others = machine_reports([*parts, *unknown, most])
    assert (slow.machine, slow.speed, slow.is_suspect) == ("m2", pytest.approx(4 / 9), False)
    assert slow.reason == "400 knps, where 900 are usual"
    assert first.machine == "m5" and not any(one.alarms for one in (first, *others))
    assert [one.machine for one in others if one.speed is None] == ["m3", "m4"]
    assert out(parts[:2]) == [], "two may differ"


SPACE = space_from("[margin]\nvalue = 200\nmin = 0\nmax = 400\nstep = 20\n")
EVEN, DECIDED = Tally(10, 10, 20, (0, 5, 10, 5, 0)), Tally(20, 20, 0, (10, 0, 0, 0, 10))


def played(store, sick=True, iterations=7):
    """A run that four machines have played, of which "m0" decides its games by a coin."""
    theta = {"margin": 200.0}
    staged = stage(store, SPACE, planned=iterations + 1)
    four = [store.register_worker(new_worker(f"m{i}-1", host=f"m{i}")) for i in range(4)]
    for k in range(iterations):
        sides = {"plus_parameters": {"margin": 220.0}, "minus_parameters": {"margin": 180.0}}
        staged.open(target_games=160, batch_games=40, base_parameters=theta, **sides)
        for i, worker in enumerate(four):
            claim = store.claim(f"k{k}-{i}", worker, 1000.0)
            assert claim is not None
            tally = DECIDED if sick and i == 0 else EVEN
            voids = {"crash": 2} if i == 1 and k < 3 else {}
            result = BatchResult(tally=tally, voids=voids, minus_time_losses=k % 2)
            store.report(claim, replace(result, think_seconds=1.0, plus_nodes=1000 + k))
        staged.apply(delta={"margin": 0.0}, theta=staged.now().theta)
    return staged


def test_the_parts_of_a_run_add_up_to_its_shares(store, monkeypatch):
    staged = played(store)
    parts = store.worker_parts(staged.run.id, 3)
    assert sorted({one.group for one in parts}) == [0, 1, 2]
    sums = {share.worker: share for share in store.worker_shares(staged.run.id)}
    assert len(sums) == 4 and all(share.batches == 7 for share in sums.values())
    for name, share in sums.items():
        own = [one for one in parts if one.worker == name]
        assert sum((one.tally for one in own), Tally()) == share.tally
        for key in ("batches", "void_games", "time_losses", "nodes", "think_seconds"):
            assert sum(getattr(one, key) for one in own) == getattr(share, key)
    assert [one.void_batches for one in parts] == [0, 0, 0, 3, 0, 0, *[0] * 6]
    assert [one.late_batches for one in parts] == [1, 2, 0] * 4
    monkeypatch.setattr(workers, "_GROUPS", 2)
    for last, batches in ((2, [1, 1]), (9, [4, 3])):
        monkeypatch.setattr(workers, "_COMPARED", last)
        found = [one.batches for one in workers.worker_parts(store, staged.now())]
        assert sorted(found, reverse=True) == sorted(batches * 4, reverse=True)


def test_a_sick_machine_is_an_alarm_of_the_report_and_on_the_pages(sqlite_store):
    staged = played(sqlite_store)
    found = report(sqlite_store, staged.now())
    (alarm,) = [one for one in found.status.alarms if one.kind is AlarmKind.WORKER_RESULTS]
    assert alarm.subject == "m0" and "of its 140 pairs 0% are even" in alarm.found
    *_, (view, rows) = replace(found, machines=found.machines[:2]).tables()
    assert rows[0].machine == "m0" and view.columns[-1].text(rows[0]) == "results"
    assert alarm in look(sqlite_store, staged.now()).alarms, "also of the command"
    told = json.loads(json.dumps(record(REPORT, found)))["machines"]
    assert [one["is_suspect"] for one in told] == [True, False, False, False]
    assert told[0]["pairs_by_points"] == [0, 0, 140] and told[0]["results_chi_square"] > 100

    with client_of(sqlite_store) as browser:
        page = browser.get("/workers").text
        overview = browser.get("/run").text
    assert "<strong>m0</strong>: of its 140 pairs 0% are even" in page
    assert page.count('<span class="status stopped">results</span>') == 1
    assert '<a href="/workers?run=first">m0</a>: of its 140 pairs' in overview


def test_a_suspect_is_set_aside_once_and_a_person_may_release_it(sqlite_store):
    staged = played(sqlite_store)
    reports = compared_machines(sqlite_store, staged.now())
    sqlite_store.set_aside("m0", "it is hot", "me")
    sqlite_store.release_machine("m0", "me")
    set_aside(sqlite_store, staged.now(), reports)
    set_aside(sqlite_store, staged.now(), reports)
    (aside,) = sqlite_store.machines_set_aside()
    assert (aside.machine, aside.actor, aside.sha256) == ("m0", "master of first", None)
    assert aside.reason.startswith("it stands out: of its 140 pairs 0% are even")
    *_, event = sqlite_store.events(staged.run.id, kinds=["set_aside"])
    assert event.detail["reason"] == aside.reason
    sqlite_store.release_machine("m0", "me")
    set_aside(sqlite_store, staged.now(), reports)
    assert sqlite_store.machines_set_aside() == []
