"""`python -m benches.information`: what a CPU second of games teaches, by how they are played.

Two versions of the bundled engine play pairs under each setting, all settings in turns. How certain
the games make us of their difference grows with normalised Elo^2 times games (van den Bergh,
"Normalized Elo"), so a second teaches normalised Elo^2 * games / CPU seconds, of engines and runner
together.
"""

import json
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import hypot, inf, sqrt
from pathlib import Path
from statistics import stdev

import click

from benches.runner.tables import markdown
from spsa.core.scoring import Estimate, Tally, nelo

_ROOT = Path(__file__).parents[1]
_HALF_WIDTH = 1.96

WEAKER = {"QUIESCENCE_DELTA_MARGIN": "-250", "BETA_PRUNE_MARGIN_PER_DEPTH": "0"}
"""Options of the weaker version; the stronger one has its own values."""

USUAL = {"--nodes": "500", "--option": "Hash=4"}

SETTINGS: Mapping[str, Mapping[str, str]] = {
    "as by default": {},
    "book: unbalanced": {"--book": "builtin:unbalanced"},
    "no adjudication": {"--no-adjudication": ""},
    "resign at 400 cp, 2 moves": {"--resign": "2 400"},
    "resign at 1000 cp, 4 moves": {"--resign": "4 1000"},
    "draw at 10 cp, 4 moves, from move 20": {"--draw": "20 4 10"},
    "a draw after 100 moves": {"--max-moves": "100"},
    "a draw after 60 moves": {"--max-moves": "60"},
    "nodes 250": {"--nodes": "250"},
    "nodes 1000": {"--nodes": "1000"},
    "nodes 2000": {"--nodes": "2000"},
    "Hash 1": {"--option": "Hash=1"},
    "Hash 16": {"--option": "Hash=16"},
    "hash cleared, by way of a filter": {"filter": "^nothing$"},
    "hash kept, by way of the same filter": {"filter": "^ucinewgame$"},
}
"""What differs from `USUAL` and the defaults of `compete`; `filter` keeps lines from the engine."""


@dataclass(slots=True)
class Played:
    """The matches of one setting; `cpu` are the CPU seconds of each game, by match."""

    tally: Tally = field(default_factory=Tally)
    plies: int = 0
    cpu: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> Estimate:
        """CPU seconds of a game; the error is a standard deviation, from the matches' spread."""
        spread = stdev(self.cpu) if len(self.cpu) > 1 else inf
        return Estimate(sum(self.cpu) / len(self.cpu), spread / sqrt(len(self.cpu)))

    @property
    def information(self) -> Estimate:
        """Normalised Elo^2 * games / CPU seconds, with one standard deviation."""
        found, seconds = nelo(self.tally), self.seconds
        error = found.error / _HALF_WIDTH
        square = max(found.value**2 - error**2, 0.0)  # the square of an estimate is too large
        relative = hypot(2 * error / max(abs(found.value), error), seconds.error / seconds.value)
        value = square / seconds.value
        return Estimate(value, value * relative)


def filtered(engine: Path, pattern: str, folder: Path) -> Path:
    """The engine behind a filter that drops the lines to it which match `pattern`."""
    script = folder / "filtered"
    script.write_text(f"#!/bin/sh\ngrep --line-buffered -v '{pattern}' | '{engine}'\n")
    script.chmod(0o755)
    return script


def built() -> Path:
    """The bundled engine with its tunables as options."""
    target = _ROOT / ".tuning" / "information"
    command = ["cargo", "build", "--release", "--quiet", "--features", "options"]
    subprocess.run([*command, "--target-dir", str(target)], cwd=_ROOT / "engine", check=True)
    return target / "release" / "diapason"


def play(
    engine: Path, settings: Mapping[str, str], pairs: int, number: int, played: Played
) -> None:
    """Play a setting's match of this number, with openings that no other one had, and add it."""
    flags = {name: value for name, value in {**USUAL, **settings}.items() if name != "filter"}
    command = [sys.executable, "-m", "worker", "--json", "-c", "1", "--games", str(2 * pairs)]
    # bwrap does not wait for its engine, so the engine's CPU time would not count.
    command.append("--no-sandbox")
    command += ["--start", str(1 + number * pairs), *_words(flags)]
    for name, value in WEAKER.items():
        command += ["--option2", f"{name}={value}"]
    with tempfile.TemporaryDirectory(prefix="bench-information-") as folder:
        pattern = settings.get("filter")
        player = engine if pattern is None else filtered(engine, pattern, Path(folder))
        command += [str(player)] * 2
        before = _cpu()
        output = subprocess.run(command, cwd=_ROOT, check=True, stdout=subprocess.PIPE).stdout
    used, found = _cpu() - before, json.loads(output)
    ll, ld, even, wd, ww = found["pentanomial"]
    played.tally += Tally(found["wins"], found["losses"], found["draws"], (ll, ld, even, wd, ww))
    played.plies += found["moves"]
    played.cpu.append(used / found["games"])


def _words(flags: Mapping[str, str]) -> Iterator[str]:
    for name, value in flags.items():
        yield name
        yield from value.split()


def _cpu() -> float:
    """User and system seconds of all children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(found: Mapping[str, Played]) -> str:
    """A row a setting; the first one is what the others are compared with."""
    base = next(iter(found.values())).information
    head = ["setting", "games", "draws", "plies", "CPU ms a game"]
    head += ["normalised Elo", "nElo^2 * games / CPU s", "to the first"]
    return markdown(head, [_row(name, played, base) for name, played in found.items()])


def _row(name: str, played: Played, base: Estimate) -> Sequence[str]:
    tally, seconds, own = played.tally, played.seconds, played.information
    difference, ratio = nelo(tally), own.value / base.value
    error = ratio * hypot(own.error / own.value, base.error / base.value) if own.value else inf
    return (
        name,
        str(tally.games),
        f"{tally.draws / tally.games:.1%}",
        f"{played.plies / tally.games:.0f}",
        f"{1000 * seconds.value:.0f} ± {1000 * _HALF_WIDTH * seconds.error:.0f}",
        f"{difference.value:.0f} ± {difference.error:.0f}",
        f"{own.value / 1000:.0f}k ± {_HALF_WIDTH * own.error / 1000:.0f}k",
        "" if own == base else f"{ratio:.2f} ± {_HALF_WIDTH * error:.2f}",
    )


@click.command()
@click.option("--rounds", type=click.IntRange(min=2), default=5, show_default=True)
@click.option("--pairs", type=click.IntRange(min=1), default=60, show_default=True, help="A match.")
@click.option("--only", multiple=True, type=click.Choice(list(SETTINGS)), help="Beside the first.")
@click.option("--book", "books", multiple=True, metavar="FILE", help="Another book to compare.")
def main(rounds: int, pairs: int, only: Sequence[str], books: Sequence[str]) -> None:
    """Play all settings in turns and print a table; all errors are 95%."""
    first = next(iter(SETTINGS))
    chosen = {name: flags for name, flags in SETTINGS.items() if not only or name in (first, *only)}
    chosen |= {f"book: {Path(book).name}": {"--book": str(Path(book).resolve())} for book in books}
    engine, found = built(), defaultdict[str, Played](Played)
    with suppress(KeyboardInterrupt):  # the table of what was played is printed anyway
        for number in range(rounds):
            for name, settings in chosen.items():
                click.echo(f"round {number + 1} of {rounds}: {name}", err=True)
                play(engine, settings, pairs, number, found[name])
    click.echo(table(found))


if __name__ == "__main__":
    main()
