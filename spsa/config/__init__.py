"""Reads config.toml, params.toml and the environment into frozen values, or lists all faults."""

from spsa.config.loading import load_config, missing_files, readable_params
from spsa.config.projection import project_theta, says
from spsa.config.settings import Config
from spsa.config.source import (
    check_against_engine,
    check_against_source,
    other_values,
    read_sources,
    source_lines,
    source_values,
)
from spsa.config.space import load_space
from spsa.config.starter import (
    CLOCK,
    EngineFiles,
    Setup,
    read_source,
    setup_of_binary,
    setup_of_source,
    starter_config,
    starter_params,
)

__all__ = [
    "CLOCK",
    "Config",
    "EngineFiles",
    "Setup",
    "check_against_engine",
    "check_against_source",
    "load_config",
    "load_space",
    "missing_files",
    "other_values",
    "project_theta",
    "read_source",
    "read_sources",
    "readable_params",
    "says",
    "setup_of_binary",
    "setup_of_source",
    "source_lines",
    "source_values",
    "starter_config",
    "starter_params",
]
