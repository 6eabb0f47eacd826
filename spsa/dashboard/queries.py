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


def whole(value: str | None, name: str, most: int = _LARGEST) -> int | None:
    """A number from 1 to `most`, or None where it is not given.

    Raises:
        HTTPException: it is something else.
    """
    if value is None:
        return None
    if not (value.isascii() and value.isdecimal() and len(value) < 12 and 1 <= int(value) <= most):
        raise HTTPException(400, f"{name} is not a whole number from 1 to {most}")
    return int(value)
