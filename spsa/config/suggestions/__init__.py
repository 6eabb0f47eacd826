"""From the constants of an engine, or its options, to the parameters that `init` suggests."""

from spsa.config.suggestions.declared import suggest_options, tuning_switches
from spsa.config.suggestions.engine_source import EngineSource, read_source
from spsa.config.suggestions.ranges import Suggested
from spsa.config.suggestions.selection import Selection, select

__all__ = [
    "EngineSource",
    "Selection",
    "Suggested",
    "read_source",
    "select",
    "suggest_options",
    "tuning_switches",
]
