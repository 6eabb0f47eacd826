"""Pure values of a tuning: parameters, results of games, game settings, seeds.

Here is what the columns of a run say of its present state: theta, estimates, and builds.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from spsa.core.json_values import Range

Values = Mapping[str, float]
"""Parameter name -> value in the parameter's own unit."""
Seconds = Annotated[float, Range(0, 7 * 86_400)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Estimates of the best values besides theta, each None as long as there is none.

    `supported` is the optimum that all games together suggest. `better_step` has the steps that
    the games suggest for parameters whose present ones look far too large or small. Both are by
    parameter name, in the parameter's own unit.
    """

    supported: Values | None = None
    better_step: Values | None = None


NOTHING_KNOWN = Estimates()


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Theta and what else is known after the result k, and how the games of k changed it.

    `theta` and `delta` have all parameters; `state` is that of the rule. `gradient`, in Elo per
    step for the active parameters, and `elo` are the estimates from the games of k alone: None
    without games, as at the start, which is k = 0.
    """

    k: int
    state: Mapping[str, Any]
    delta: Values
    theta: Values
    estimates: Estimates = NOTHING_KNOWN
    gradient: Values | None = None
    elo: float | None = None
    bounded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Builds:
    """The builds of a run at one moment.

    `iterations` are the k that are being built, the first of them for `seconds`; they wait where
    no worker builds, without `has_builder`. `usual` is what the last iterations took in seconds,
    the slowest of a few, None before the first.
    """

    iterations: tuple[int, ...] = ()
    seconds: Seconds = 0.0
    usual: Seconds | None = None
    has_builder: bool = True


def derived_seed(*parts: object) -> int:
    """A 63-bit seed from the text of its parts, as a run's seed and a place in the run.

    Different parts give unrelated seeds.
    """
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1
