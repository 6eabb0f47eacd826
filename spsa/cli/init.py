"""`spsa-master init`: a first config.toml and params.toml for somebody's own engine."""

from collections.abc import Iterator
from pathlib import Path

import click

from spsa.builds.rust import parse
from spsa.config import starter_config, starter_params
from spsa.config.proposals import propose
from spsa.errors import Fault, InvalidInput, NothingToDo
from spsa.output import echo

DEFAULT_CONSTANTS = "src/engine_constants.rs"


@click.command()
@click.argument("source", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--constants-file",
    metavar="FILE",
    help=f"Where the constants are, relative to SOURCE; default: {DEFAULT_CONSTANTS}, or the one "
    "file below src that has `constants`, `params` or `tunables` in its name.",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    show_default="here",
    help="Where the two files go.",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
def init(source: Path, constants_file: str | None, folder: Path, force: bool) -> None:
    """Write config.toml and params.toml for the engine whose Cargo.toml is in SOURCE.

    Every number of its constants file that can be tuned is proposed with a range and a step; edit
    the proposals, they are guesses.
    """
    constants = _constants(source, constants_file)
    targets = [folder / "config.toml", folder / "params.toml"]
    _refuse_existing([] if force else [target for target in targets if target.exists()])
    proposals = propose(parse(_text(source / constants), constants))
    if not any(not proposal.reason for proposal in proposals):
        raise NothingToDo(
            f"{source / constants} has no number that can be tuned: name another file"
        )
    folder.mkdir(parents=True, exist_ok=True)
    texts = [
        starter_config(_seen_from(source, folder), constants),
        starter_params(proposals, constants),
    ]
    for target, text in zip(targets, texts, strict=True):
        target.write_text(text, encoding="utf-8")
    active = sum(not proposal.reason for proposal in proposals)
    echo(
        f"{targets[0]} and {targets[1]}: {active} parameters proposed, {len(proposals) - active} "
        "more commented out; edit them, then `spsa-master params show`, `plan`, `run`"
    )


def _constants(source: Path, wanted: str | None) -> str:
    """The constants file relative to the source; InvalidInput says what to do without one."""
    if not (source / "Cargo.toml").is_file():
        raise _refused(str(source), "SOURCE", "has no Cargo.toml", "name the engine's folder")
    if wanted is None:
        candidates = sorted(_candidates(source))
        if len(candidates) == 1:
            return candidates[0]
        found = f"several files may hold the constants: {', '.join(candidates)}"
        raise _refused(
            str(source),
            "--constants-file",
            found if candidates else f"there is no {DEFAULT_CONSTANTS}",
            "say which file: --constants-file src/search.rs",
        )
    inside = _inside(source, wanted)
    if inside is None:
        remedy = "name a Rust file inside SOURCE, relative to it"
        raise _refused(str(source / wanted), "--constants-file", "is no such file", remedy)
    return inside


def _inside(source: Path, wanted: str) -> str | None:
    """The file as config.toml has to name it; None for what is no Rust file of the source."""
    root, file = source.resolve(), (source / wanted).resolve()
    if root not in file.parents or file.suffix != ".rs" or not file.is_file():
        return None
    return file.relative_to(root).as_posix()


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise _refused(str(file), "--constants-file", "is not UTF-8", "save it as UTF-8") from None


def _candidates(source: Path) -> Iterator[str]:
    if (source / DEFAULT_CONSTANTS).is_file():
        yield DEFAULT_CONSTANTS
        return
    for path in (source / "src").rglob("*.rs"):
        named = any(word in path.stem for word in ("constants", "params", "tunables"))
        if named and path.is_file():
            yield path.relative_to(source).as_posix()


def _seen_from(source: Path, folder: Path) -> Path:
    """The source as config.toml names it: as it was given, if that leads there from the folder."""
    if (folder.resolve() / source).resolve() == source.resolve():
        return source
    return source.resolve()


def _refuse_existing(existing: list[Path]) -> None:
    faults = [
        Fault(
            file=str(path),
            line=None,
            name=path.name,
            found="is there already",
            remedy="use --force to replace it, or --folder for another place",
        )
        for path in existing
    ]
    if faults:
        raise InvalidInput(faults)


def _refused(file: str, name: str, found: str, remedy: str) -> InvalidInput:
    return InvalidInput([Fault(file=file, line=None, name=name, found=found, remedy=remedy)])
