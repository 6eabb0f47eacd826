"""Validations: which thetas, how strong, what a sequential test accepts; thetas by their words."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from builders import TERMS, Stage, new_validation, space_from, stage
from stories import Story
from transcripts import headings

from spsa.core.game_settings import MinusSettings
from spsa.core.scoring import Tally
from spsa.db.tables import Compared
from spsa.report.figures import figures
from spsa.report.matches import MATCHES, Match, named_theta
from spsa.report.report import history
from spsa.report.status import Status, status
from spsa.report.table import record

SPACE = "[margin]\nvalue = 50\nmin = 0\nmax = 100\nstep = 8\n"


class Measured(Story):
    """A run with four results, its matches, and what is told of them."""

    staged: Stage

    def tuned(self) -> None:
        self.staged = stage(self.store, space_from(SPACE), 4)
        self._masters["first"] = self.staged.master

    def validate(self, *, games, **over) -> None:
        """A match that is played; `engines` are sides that no values of the run make."""
        self.staged.validate(games, **self._facts(**over))

    def begin(self, *, games, **over) -> None:
        new = new_validation(target_games=games, **self._facts(**over))
        self.store.open_iteration(self.staged.master, new)

    def _facts(
        self, *, opened_on=4, match=None, handicap=None, engines="", label=None, values=0, **given
    ):
        if "sprt" in given:
            given["sprt"] = tuple(map(float, given["sprt"]))
        for side in ("theta", "against"):
            if side in given:
                given[side] = str(given[side])
        sides = {"minus": ("minus",), "both": ("plus", "minus"), "": ()}[engines]
        minus = MinusSettings(handicap=handicap, foreign=True) if handicap else TERMS.minus
        return {
            "opened_on": opened_on,
            "match_number": match,
            "compared": Compared(**given) if given or label else None,
            "game_settings": replace(TERMS, minus=minus),
            **{f"{side}_parameters": {} for side in sides},
            **({"plus_parameters": {"margin": values}} if values else {}),
        }

    def _status(self) -> Status:
        return status(self.store, self.store.run())

    def _last(self) -> Match:
        return Match(self.store.matches(self.staged.run.id)[-1])

    def match(self) -> Iterator[str]:
        return self._last().sentences()

    def record(self) -> str:
        told = json.loads(json.dumps(record(MATCHES, self._last())))
        kept = {name: told[name] for name in ("status", "compared", "opened_on", "los", "sprt")}
        return re.sub(r"\d+\.\d+", lambda one: f"{float(one[0]):.3f}", json.dumps(kept))

    def table(self) -> Iterator[str]:
        """What is compared, and how that ended, of all matches."""
        matches = self._status().validations
        its = [c for c in MATCHES.for_people(matches) if c.heading == "status" or c.kind == "text"]
        yield " | ".join(one.heading for one in its)
        yield from (" | ".join(one.text(match) for one in its) for match in matches)

    def sums(self, match: int) -> bool:
        """Whether a match is the sum of its rounds."""
        rounds = self.store.iterations(self.staged.run.id, match=match)
        return self._last().tally == sum((one.tally for one in rounds), Tally())

    def says(self, words: str) -> list[str]:
        return [line for line in self._status().sentences() if words in line]

    def says_at_once(self) -> str:
        """The first line of a status whose matches were read before the last one was opened."""
        return next(replace(self._status(), matches=()).sentences())

    def measures(self) -> str:
        found = self._status()
        return f"{found.measured.elo}, {found.measured.over}, {found.validations[-1].measured}"

    def curve(self) -> Iterator[str]:
        """Of status and history, and the matches that the history has."""
        found, told = self._status().measured, history(self.store, self.store.run())
        assert told.measured.curve == found.curve
        if found.curve is not None:
            elo = ", ".join(f"{value:.1f}" for value in found.curve.elo)
            yield f"results {found.curve.ks}: Elo {elo}"
        yield f"opened on {[match.iteration.opened_on for match in told.measured.matches]}"

    def figure(self) -> Iterator[str]:
        drawn = figures(history(self.store, self.store.run()))["elo"]
        yield drawn["layout"]["yaxis"]["title"]["text"]
        yield from (trace["name"] for trace in drawn["data"] if "name" in trace)

    def named(self, word: object) -> str:
        """The values of a theta, and after which result; which step that was."""
        values, k = named_theta(self.store, self.store.run(), str(word))
        return f"{dict(values)}, k={k}"


STORY = Measured


@pytest.mark.parametrize("heading", headings(__file__))
def test_matches(heading, story):
    story(heading, long="9" * 5000)
