"""One table of a file as a pydantic model, and what is wrong in it as faults with their lines."""

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from spsa.config.document import Found, Key, nth, shown
from spsa.text import is_printable, suggestion

_LONGEST_TEXT = 4096


class Section(BaseModel):
    """One table of a file. A field is a key, and the text below it is its documentation."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        defer_build=True,  # until a file is read
    )

    def faults(self) -> Iterator[Found]:
        """What is wrong between the keys of this table, each of which is right by itself."""
        return iter(())

    @model_validator(mode="after")
    def _between(self) -> Self:
        refuse_all([*self.faults()], "keys")
        return self


def folder_of(info: ValidationInfo) -> Path:
    """The folder of the file that has a value; the current one for a value that no file has."""
    return info.context if isinstance(info.context, Path) else Path()


def refuse_all(told: list[Found], between: Literal["keys", "tables"]) -> None:
    """Raise what a validator has found, if anything; the keys of tables begin at the file."""
    if told:
        raise PydanticCustomError(between, "they do not go together", {"faults": told})


def refusal(found: str, remedy: str) -> PydanticCustomError:
    """The error of a validator; in both texts `{given}` is the key with its value."""
    return PydanticCustomError("refused", "{found}", {"found": found, "remedy": remedy})


def _plain(text: str) -> str:
    """A text that can go to a terminal, a command line or an engine unchanged."""
    if text and not is_printable(text, _LONGEST_TEXT):
        limit = f"at most {_LONGEST_TEXT} printable characters on one line"
        raise refusal(f"{{given}} is not a text of {limit}", 'write {key} = "..."')
    return text


def located(name: object, info: ValidationInfo) -> object:
    """The absolute path that a text names; the file need not exist. None for an empty text."""
    if not isinstance(name, str) or not name:
        return name or None
    try:
        path = folder_of(info) / Path(_plain(name)).expanduser()
    except RuntimeError:
        raise refusal("{given} is in no user's home", "name another path") from None
    return Path(os.path.realpath(path))


def even(number: int) -> int:
    if number % 2:
        remedy = f"games come in pairs: use {number - 1} or {number + 1}"
        raise refusal("{given} is odd", remedy)
    return number


Text = Annotated[str, AfterValidator(_plain)]
Texts = Annotated[tuple[Text, ...], Field(strict=False)]
FilePath = Annotated[Path, BeforeValidator(located)]
OptionalText = Annotated[Text | None, BeforeValidator(lambda text: None if text == "" else text)]
OptionalPath = Annotated[Path | None, BeforeValidator(located)]
OrOff = BeforeValidator(lambda value: None if value is False else value)
"""`false` is None."""

Table = TypeVar("Table", bound=Section)


def read_table(
    model: type[Table],
    data: Mapping[str, object],
    faults: list[Found],
    at: Key = (),
    folder: Path | None = None,
) -> Table | None:
    """The model of the table at `at`; None after adding what is wrong in it to `faults`.

    Paths in it start at `folder`. What is wrong between the keys of a table is told once each of
    them is right by itself.
    """
    try:
        return model.model_validate(data, context=folder)
    except ValidationError as error:
        told = (((*at, *path), found, remedy) for path, found, remedy in _told(model, data, error))
        faults += told
    return None


def _told(
    model: type[Section], data: Mapping[str, object], error: ValidationError
) -> Iterator[Found]:
    """One fault for each path, which tells all parts of a union."""
    told: dict[Key, tuple[ErrorDetails, object]] = {}
    for one in error.errors():
        path, value = _place(one, data)
        if one["type"] == "default_factory_not_called":
            continue
        if path in told and told[path][0]["type"] != one["type"] == "literal_error":
            usual, (one, _) = one["msg"].removeprefix("Input should be "), told[path]
            one["msg"] += f", or {usual}"
        told[path] = one, value
    for path, (one, value) in told.items():
        if one["type"] in ("keys", "tables"):
            at = path if one["type"] == "keys" else ()
            yield from (((*at, *key), *said) for key, *said in one["ctx"]["faults"])
        else:
            yield path, *_said(model, path, one, value)


def _place(error: ErrorDetails, data: Any) -> tuple[Key, object]:
    """The keys of an error's location, and what stands there.

    Of the parts of a list or union only the tables of an array of tables are told apart.
    """
    path: list[str] = []
    for part in error["loc"]:
        if isinstance(part, int) and isinstance(data, dict):
            continue  # one table is read like an array of one
        name = str(part)
        if isinstance(part, int) and isinstance(data, list) and isinstance(data[part], dict):
            name = nth(part)
            data = {name: data[part]}
        if not isinstance(data, dict) or (name not in data and error["type"] != "missing"):
            break
        path.append(name)
        data = data.get(name)
    return tuple(path), data


def _known(model: type[Section], path: Key) -> Collection[str]:
    """The keys of the table at `path`."""
    for name in path:
        if name not in model.model_fields:  # a table of an array
            continue
        annotation = model.model_fields[name].annotation
        kinds = (annotation, *get_args(annotation))
        model = next(one for one in kinds if isinstance(one, type))
    return model.model_fields


_TEXT = ("{given} is not a text", 'write {key} = "..."')
_TABLE = ("{given} is not a table", "write [{path}] and its keys")
_SAID: Mapping[str, tuple[str, str]] = {
    "missing": ("{key} is missing", "give it a value: {key} = ..."),
    "string_type": _TEXT,
    "is_instance_of": _TEXT,  # a path
    "tuple_type": ("{given} is not a list of texts", 'write {key} = ["...", "..."]'),
    "dict_type": _TABLE,
    "model_type": _TABLE,
    "refused": ("{found}", "{remedy}"),
}
"""What is said of an error, and what would be right, where pydantic's own words do not suit."""

_PLAIN_WORDS = (
    ("Input should be", "it has to be"),
    ("a valid integer", "a whole number"),
    ("a valid number", "a number"),
    ("a valid boolean", "true or false"),
)


def _said(model: type[Section], path: Key, error: ErrorDetails, value: object) -> tuple[str, str]:
    """What was found at `path`, and what would be right."""
    kind = error["type"]
    if kind == "extra_forbidden":
        return f"unknown key {path[-1]!r}", suggestion(path[-1], _known(model, path[:-1]))
    if kind == "string_type" and isinstance(error["loc"][-1], int):  # in a list
        kind = "tuple_type"
    said = error.get("ctx", {}) | {
        "given": f"{path[-1]} = {shown(value)}",
        "key": path[-1],
        "path": ".".join(path),
    }
    usual = error["msg"].replace("'", '"')
    for word, plain in _PLAIN_WORDS:
        usual = usual.replace(word, plain)
    found, remedy = _SAID.get(kind, ("{given} is refused", usual))
    return _filled(found, said), _filled(remedy, said)


def _filled(text: str, said: Mapping[str, object]) -> str:
    for name, part in said.items():
        text = text.replace(f"{{{name}}}", str(part))
    return text
