"""Checks the files against an engine's options: a value that it clamps silently tunes nothing."""

from collections.abc import Iterator, Mapping

from spsa.config.document import read_document
from spsa.config.settings import Config
from spsa.config.source import extremes
from spsa.core.game_settings import Declarations
from spsa.core.params import Parameter, Space
from spsa.errors import Fault


def check_against_engine(
    space: Space, declarations: Declarations, config: Config
) -> tuple[Fault, ...]:
    """The faults of the delivery over UCI: an unknown option, or a value outside its range.

    Checks every parameter at both ends of its range.
    """
    return (
        *_of_options(config, declarations),
        *_of_parameters(space, declarations, str(config.params_path)),
    )


def _of_options(config: Config, declarations: Declarations) -> Iterator[Fault]:
    lines: Mapping[tuple[str, ...], int] = read_document(config.path).lines
    for name, value in config.terms.engine_options.items():
        if objection := declarations.objection(name, value):
            yield Fault(
                file=str(config.path),
                line=lines.get(("engine", "options", name)),
                name="engine.options",
                found=f"the engine would not accept it: {objection}",
                remedy="write the option as the engine declares it in its reply to `uci`",
            )


def _of_parameters(space: Space, declarations: Declarations, file: str) -> Iterator[Fault]:
    for parameter in space.parameters:
        if objection := next(_objections(parameter, declarations), None):
            yield Fault(
                file=file,
                line=parameter.line,
                name=parameter.name,
                found=f"the engine would not accept it: {objection}",
                remedy="correct `option`, or keep min and max inside the option's range",
            )


def _objections(parameter: Parameter, declarations: Declarations) -> Iterator[str]:
    for value in extremes(parameter):
        objection = declarations.objection(parameter.option, str(parameter.to_engine(value)))
        if objection is not None:
            yield objection
