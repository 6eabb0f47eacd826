"""Formats of other tuners, read into spaces and written from them."""

from spsa.config.formats.lines import COLUMNS, write_lines
from spsa.config.formats.objects import (
    params_file,
    params_json,
    peer_parameters,
    write_chess_tuning_tools,
    write_weather_factory,
)
from spsa.config.formats.peer import (
    USUAL_R_END,
    PeerParameter,
    PeerTune,
    Plan,
    mapping_notes,
)
from spsa.config.formats.reading import FORMATS, Imported, gains_file, read_file

__all__ = [
    "COLUMNS",
    "FORMATS",
    "USUAL_R_END",
    "Imported",
    "PeerParameter",
    "PeerTune",
    "Plan",
    "gains_file",
    "mapping_notes",
    "params_file",
    "params_json",
    "peer_parameters",
    "read_file",
    "write_chess_tuning_tools",
    "write_lines",
    "write_weather_factory",
]
