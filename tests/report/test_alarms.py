"""Alarms: each is raised by what it names, and a sound run raises none."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from unittest.mock import patch

import pytest
from builders import LEASE, space_from, stage, tunable_run
from stories import Story
from transcripts import headings

from spsa.core import Builds
from spsa.core.scoring import Tally
from spsa.db.tables import Event
from spsa.protocol import BatchResult, KeptVoid
from spsa.report.alarms import look, of_validations
from spsa.report.events import ALARMS, EVENTS, Alarm, AlarmKind, grouped, told
from spsa.report.matches import Match
from spsa.report.report import report
from spsa.report.status import STATUS, Status, status
from spsa.report.table import record

TABLE = "[{}]\nvalue = {}\nmin = 0\nmax = {}\nstep = {}\n"


def space(margin=200):
    return space_from(TABLE.format("margin", margin, 400, 20) + TABLE.format("depth", 50, 100, 5))


class Watched(Story):
    """Runs of two parameters, and what is wrong with them."""

    def tuned(self, name="first", *, margin=200, applied=0, planned=40) -> None:
        """A run of a real rule, which has applied so many results."""
        if applied:
            made = stage(self.store, space(margin), applied, name=name, planned=planned)
            self._masters[name] = made.master
        else:
            self.store.create_run(tunable_run(space(margin), planned, name=name))
            self.lead(name)

    def result(
        self,
        name="first",
        *,
        machine="machine",
        margin=200.0,
        depth=50.0,
        wins=5,
        losses=5,
        draws=10,
        pairs=(0, 0, 10, 0, 0),
        voids=0,
        kept="",
        **over,
    ) -> None:
        """An iteration of one batch; plus has 20 more margin, and another depth."""
        theta = {"margin": margin, "depth": 50.0}
        games = wins + losses + draws
        plus = {"margin": 220.0, "depth": depth}
        sides = {"base_parameters": theta, "plus_parameters": plus, "minus_parameters": theta}
        self.open(name, batches=1, games=games, **sides)
        claim = self.claimed(machine)
        where = {"pair": 0, "culprit": "plus", "white": "plus", "position": "", "output": ""}
        void = [KeptVoid(detail=kept, **where)] if kept else []
        said = {"voids": {"illegal move": voids} if voids else {}, "kept_voids": tuple(void)}
        tally = Tally(wins, losses, draws, tuple(map(int, pairs)))
        self.store.report(claim, BatchResult(tally=tally, **said, **over))
        self.apply(name, delta=dict.fromkeys(theta, 0.0), theta=theta)

    def builds(self, seconds=None, has_builder=False) -> None:
        """What the master builds, for so long."""
        made = Builds(usual=900.0)
        if seconds is not None:
            made = Builds(iterations=(1,), seconds=seconds, has_builder=has_builder)
        self.store.tick(self._masters["first"], LEASE, made)

    def _look(self, name: str) -> Status:
        return look(self.store, self.store.run(name))

    def alarms(self, name="first") -> list[str]:
        found = self._look(name)
        json.dumps(record(STATUS, found), allow_nan=False)
        return [f"{alarm.kind}: {alarm}" for alarm in found.alarms]

    def reported(self) -> list[Alarm]:
        return list(report(self.store, self.store.run()).status.alarms)

    def says(self, word: str) -> Iterator[str]:
        return (line for line in self._look("first").sentences() if word in line)

    def pace(self) -> str:
        """At half a game a second."""
        return replace(self._look("first"), games_per_second=0.5).pace.removeprefix("left: ")

    def earlier(self, name: str) -> str:
        found = status(self.store, self.store.run(name)).earlier
        return f"after {found.run.name}" if found else "after none"


STORY = Watched


@pytest.mark.parametrize("heading", headings(__file__))
def test_alarms(heading, story, monkeypatch):
    """A run that is paused, or has no master, is in `tests/cli/test_cli_status.txt`."""
    monkeypatch.setattr("spsa.report.alarms.RECENT", 10)
    story(heading)


def test_many_alarms_of_a_kind_are_a_few_lines():
    many = [Alarm(AlarmKind.AT_BOUND, f"p{i}", "at its max 9") for i in range(40)]
    told = [Alarm(AlarmKind.PAUSED, "first", "it is paused")]
    first, second = map(str, grouped([*many, *told]))
    assert first == str(told[0])
    assert second.startswith("40 alike, p0, p1, p2, p3 and 36 more: at its max 9 (p0); a wider ")
    assert list(grouped(many[:3])) == many[:3]
    assert str(next(grouped(many[:4]))).startswith("4 alike, p0, p1, p2, p3: at its")
    silent = [replace(one, kind=AlarmKind.SILENT) for one in many]
    assert str(*grouped(silent)).startswith("40 workers silent, p0, p1, p2, p3 and 36 more: ")


def test_an_event_tells_an_alarm_as_a_sentence():
    alarm = Alarm(AlarmKind.WORKER_VOIDS, "rig", "3% of its batches")
    event = Event(at=datetime(2026, 1, 1), kind="alarm", actor="m", detail={})
    begun = replace(event, detail=record(ALARMS, alarm))
    assert told(begun).startswith("rig: 3% of its batches; `spsa-master workers exclude rig`")
    over = replace(begun, kind="alarm_over")
    assert (told(over), EVENTS.columns[1].text(over)) == ("rig: 3% of its batches", "alarm over")
    assert told(replace(event, detail={"kind": "unheard_of"})) == "kind unheard_of"


def test_tuned_values_that_are_measured_to_be_worse(store):
    staged = stage(store, space(), 2)
    staged.validate()
    found = status(store, staged.now())
    assert not [*of_validations(found)]
    with patch.object(Match, "tally", Tally(20, 45, 35, (5, 16, 20, 7, 2))):  # by 95% alone
        assert not [*of_validations(found)]
    lost = Tally(0, 40, 60, (0, 40, 10, 0, 0))
    with patch.object(Match, "tally", lost):
        (alarm,) = of_validations(found)
    assert alarm.kind is AlarmKind.WORSE and alarm.found.endswith("Elo (95%) weaker")
