"""What people send: the token with which they log in, and the changes of an operator."""

from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from spsa.db.store import Store
from spsa.server.guard import client_address, session_of, too_many_guesses
from spsa.server.pages import needed
from spsa.server.rendering import link, render
from spsa.server.tokens import COOKIE, SESSION_SECONDS, People, Role, TokenGuesses, is_same
from spsa.text import NAME_LENGTH, is_printable

_MAX_BYTES = 4096
ACTOR = "operator"


class Forms:
    """Takes the forms of the pages; Guard has made sure that they come from a page."""

    def __init__(self, store: Store, people: People, guesses: TokenGuesses) -> None:
        self._store = store
        self._people = people
        self._guesses = guesses

    def login_page(self, _request: Request) -> Response:
        return HTMLResponse(render("login", wrong=False))

    async def log_in(self, request: Request) -> Response:
        """Take a token and answer with a cookie."""
        fields, address = await _fields(request), client_address(request)
        if seconds := self._guesses.seconds_to_wait(address):
            return too_many_guesses(request.url.path, seconds)
        token = self._people.find(fields.get("token", "").strip())
        if token is None:
            self._guesses.add_wrong(address)
            return HTMLResponse(render("login", wrong=True), 401)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            COOKIE,
            token.new_cookie(),
            max_age=SESSION_SECONDS[token.role],
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    async def change_run(self, request: Request) -> Response:
        """Pause, resume or stop a run; what cannot be undone is asked for once more."""
        name, fields = needed(request, "run"), await _fields(request)
        form_token = _operator(request, fields)
        change, reason = fields.get("change", ""), fields.get("reason", "").strip()
        if reason and not is_printable(reason, NAME_LENGTH):
            raise HTTPException(400, f"reason is not one line of at most {NAME_LENGTH} characters")
        if change == "stop" and "confirmed" not in fields:
            return HTMLResponse(render("stop", name=name, reason=reason, form_token=form_token))
        await run_in_threadpool(self._change, name, change, reason or f"by the {ACTOR}")
        return RedirectResponse(link("/run", run=name), 303)

    def _change(self, name: str, change: str, reason: str) -> None:
        if change == "pause":
            self._store.pause(name, ACTOR, reason)
        elif change == "resume":
            self._store.resume(name, ACTOR)
        elif change == "stop":
            self._store.stop(name, ACTOR, reason)
        else:
            raise HTTPException(400, "change is not pause, resume or stop")


def _operator(request: Request, fields: Mapping[str, str]) -> str:
    """The form token of the operator who has sent this form.

    Raises:
        HTTPException: it was somebody else, or no page of this session had the form.
    """
    session = session_of(request)
    if session is None or session.role is not Role.OPERATOR:
        raise HTTPException(403, "only an operator changes a run: log in with the operator's token")
    if session.form_token is None or not is_same(fields.get("form_token", ""), session.form_token):
        raise HTTPException(403, "this form is not of your session: load the page again")
    return session.form_token


async def _fields(request: Request) -> dict[str, str]:
    """The fields of a form, the first of each name.

    Raises:
        HTTPException: the form is too long, or ends early.
    """
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > _MAX_BYTES:
                raise HTTPException(413, f"a form has at most {_MAX_BYTES} bytes")
    except ClientDisconnect:
        raise HTTPException(400, "the form ends early") from None
    return {name: values[0] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
