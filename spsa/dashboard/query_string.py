"""What stands behind the `?` of an address, checked."""

from starlette.exceptions import HTTPException
from starlette.requests import Request

from spsa.text import is_printable

_LONGEST = 500
_LARGEST = 2**31 - 1


def text(request: Request, name: str) -> str | None:
    """A text, or None where it is not given.

    Raises:
        HTTPException: it is longer than any name, or not printable.
    """
    value = request.query_params.get(name)
    if value and not is_printable(value, _LONGEST):
        raise HTTPException(400, f"{name} is not a printable text of at most {_LONGEST} characters")
    return value


def needed(request: Request, name: str) -> str:
    """A text that has to be given."""
    value = text(request, name)
    if value is None:
        raise HTTPException(400, f"{name} is missing: add {name}=... to the address")
    return value


def place(request: Request) -> tuple[int, int]:
    """The numbers of an iteration and of one of its batches, which begin with 0."""
    number = whole(needed(request, "number"), "number") or 0
    return number, whole(needed(request, "seq"), "seq", least=0) or 0


def whole(value: str | None, name: str, most: int = _LARGEST, *, least: int = 1) -> int | None:
    """A number from `least` to `most`, or None where it is not given.

    Raises:
        HTTPException: it is something else.
    """
    if value is None:
        return None
    is_number = value.isascii() and value.isdecimal() and len(value) < 12
    if not (is_number and least <= int(value) <= most):
        raise HTTPException(400, f"{name} is not a whole number from {least} to {most}")
    return int(value)
