"""From the constants of an engine to the parameters that `init` proposes."""

from spsa.config.proposals.constants import propose
from spsa.config.proposals.crate import Crate, find_crate, read_crate
from spsa.config.proposals.options import propose_options
from spsa.config.proposals.ranges import Proposed
from spsa.config.proposals.selection import Selection, select

__all__ = [
    "Crate",
    "Proposed",
    "Selection",
    "find_crate",
    "propose",
    "propose_options",
    "read_crate",
    "select",
]
