"""Real workers for an iteration of scripted engines: two batches of four games, all won by plus."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from asking import Store
from builders import Stage, published, stage
from console import ROOT, environment, worker
from engines.faulty import LOSER, WINNER, engine, start_book, wait_until
from invariants import broken
from shell import Shell

from spsa.core.game_settings import Book, GameSettings, TimeControl
from spsa.db.migrate import upgrade
from spsa.history.doctor import check_run

GAMES = 8
NO_SWITCHES: Mapping[str, object] = {}
UNHURRIED = TimeControl(low=30.0, high=30.0)
"""Its engines move at once, however long they may think."""


def opened(
    store: Store,
    folder: Path,
    time_control: TimeControl,
    plus: Mapping[str, object] = NO_SWITCHES,
    minus: Mapping[str, object] = NO_SWITCHES,
) -> Stage:
    """A run with an open iteration of scripted engines that have these switches."""
    staged = stage(store)
    staged.open(
        plus=published(engine(folder, "plus", **{"moves": WINNER} | dict(plus))),
        minus=published(engine(folder, "minus", **{"moves": LOSER} | dict(minus))),
        plus_options={},
        minus_options={},
        game_settings=GameSettings(
            time_control=time_control, book=Book(name=str(start_book(folder)))
        ),
    )
    return staged


@dataclass
class Trial:
    """An open iteration, and the workers that were started for it in `folder`."""

    folder: Path
    url: str
    stage: Stage
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def worker(
        self, *arguments: str, before: Sequence[str] = (), **variables: str
    ) -> subprocess.Popen[bytes]:
        """One that ends when nothing is left to play; `before` is what its command begins with."""
        usual = ("--spsa", "-c", "1", "--engines-cache", str(self.folder / "cache"))
        name = f"worker-{len(self.processes)}"
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*before, *worker(*usual, "--name", name, *(arguments or ("--max-batches", "2")))],
                cwd=self.folder,
                env=environment(**{"DATABASE_URL": self.url} | variables),
                stderr=log,
            )
        self.processes.append(process)
        return process

    def words(self) -> str:
        """All that the workers have said."""
        return "\n".join(log.read_text() for log in sorted(self.folder.glob("worker-*.log")))

    def wait_for(self, words: str) -> None:
        """Wait until a worker has said so."""
        try:
            wait_until(lambda: words in self.words(), seconds=240)
        except TimeoutError:
            raise AssertionError(f"nobody said {words!r}\n{self.words()}") from None

    def assert_counted(self, games: int = GAMES) -> None:
        """Every game was won by plus and counts once."""
        (iteration,) = self.stage.store.iterations(self.stage.run.id)
        tally = iteration.tally
        assert (tally.games, tally.wins) == (games, games), self.words()
        assert check_run(self.stage.store, self.stage.now()) == []
        with closing(Shell(self.url)) as sql:
            assert broken(sql) == []
        assert "Traceback" not in self.words()


@contextmanager
def trial(folder: Path, url: str, **switches: object) -> Iterator[Trial]:
    """One whose plus engine has these switches, and whose processes are gone afterwards."""
    folder.mkdir(exist_ok=True)
    upgrade(url)
    with Store(url) as store:
        made = Trial(folder, url, opened(store, folder, UNHURRIED, plus=switches))
        try:
            yield made
        finally:
            for process in made.processes:
                process.kill()
                process.wait()


class OneIteration:
    """A database with an open iteration, and worker processes on it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder

    def open(self, time_control: TimeControl, **minus: object) -> None:
        with Store(self.url, durable=False) as store:
            opened(store, self.folder, time_control, minus=minus)

    def start(self, *words: object) -> subprocess.Popen[str]:
        cache = self.folder / "cache"
        return subprocess.Popen(
            worker("--spsa", "-c", "1", "--engines-cache", str(cache), *map(str, words)),
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(DATABASE_URL=self.url),
        )
