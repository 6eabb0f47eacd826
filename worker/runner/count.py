"""The sums over finished pairs, for a batch and for a match."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from spsa.core.game_settings.numbers import MAX_NODES_OF_BATCH
from spsa.core.scoring import Tally
from spsa.text import OTHER_REASONS, VOID_REASON_LENGTH, VOID_REASONS, printable
from worker.runner.game import Pair


@dataclass(slots=True)
class Speeds:
    """The engines' speed in each slot; a slot that is slower than the others shares its core."""

    nodes: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    seconds: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, slot: int, pair: Pair) -> None:
        self.nodes[slot] += sum(pair.nodes())
        self.seconds[slot] += pair.seconds

    def nps(self) -> dict[int, float]:
        """Nodes a second of an engine while it thinks, by slot."""
        return {
            slot: self.nodes[slot] / seconds
            for slot, seconds in sorted(self.seconds.items())
            if seconds
        }


@dataclass(slots=True)
class GameTotals:
    """The sums over the pairs of one batch or match so far."""

    tally: Tally = field(default_factory=Tally)
    voids: Counter[str] = field(default_factory=Counter)
    plus_nodes: int = 0
    minus_nodes: int = 0
    moves: int = 0
    plus_time_losses: int = 0
    minus_time_losses: int = 0
    think_seconds: float = 0.0

    def add(self, pair: Pair) -> None:
        self.tally += pair.tally
        plus_nodes, minus_nodes = pair.nodes()
        self.plus_nodes = min(self.plus_nodes + plus_nodes, MAX_NODES_OF_BATCH)
        self.minus_nodes = min(self.minus_nodes + minus_nodes, MAX_NODES_OF_BATCH)
        plus_losses, minus_losses = pair.time_losses()
        self.plus_time_losses += plus_losses
        self.minus_time_losses += minus_losses
        self.moves += pair.moves
        self.think_seconds += pair.seconds

    def add_void(self, reason: str) -> None:
        """Count one void game; the other game of its pair does not count as void.

        Engines can cause any number of different reasons: those after the first few share one.
        """
        known = printable(reason, VOID_REASON_LENGTH)
        full = known not in self.voids and len(self.voids) >= VOID_REASONS - 1
        self.voids[OTHER_REASONS if full else known] += 1

    def nps(self) -> float | None:
        """Nodes a second of one engine while it thinks."""
        return (
            (self.plus_nodes + self.minus_nodes) / self.think_seconds
            if self.think_seconds > 0
            else None
        )

    def __str__(self) -> str:
        tally = self.tally
        counts = " ".join(str(count) for count in tally.pentanomial)
        return f"+{tally.wins} -{tally.losses} ={tally.draws} [{counts}]"
