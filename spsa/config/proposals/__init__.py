"""From the constants of an engine to the parameters that `init` proposes."""

from spsa.config.proposals.constants import propose
from spsa.config.proposals.engine_source import EngineSource, read_source
from spsa.config.proposals.options import propose_options
from spsa.config.proposals.ranges import Proposed
from spsa.config.proposals.selection import Selection, select

__all__ = [
    "EngineSource",
    "Proposed",
    "Selection",
    "propose",
    "propose_options",
    "read_source",
    "select",
]
