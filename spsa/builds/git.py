"""Sources by address and commit: a clean checkout in the user's cache.

The folder of a checkout is named by its commit. It is there complete or not at all, and is made
again if its files were changed. git finds credentials as it usually does, and never prompts.
"""

import logging
import os
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from spsa.builds.commands import Commands
from spsa.builds.tree import whole_folder
from spsa.errors import BuildFailed, InvalidInput, RepositoryUnreachable
from spsa.files import MAX_TEXT, cache_folder, content, private_folder, write_whole
from spsa.text import without_passwords

DEFAULT_REF = "HEAD"

_ADDRESS = re.compile(r"(https?|ssh|git)://[^\s/-]\S*|file:///.+|\w[\w.-]*@\w[\w.-]*:\S+")
_ANY_ADDRESS = re.compile(r"[\w+.-]+://|[\w.-]+@[\w.-]+:|\w+::")
_REF = re.compile(r"(?!-)(?!.*(\.\.|@\{|//))[^\s~^:?*\[\\\x00-\x1f\x7f]{1,200}")
_AT_REF = re.compile(r"((?:[\w+.-]+://[^/]*|[^/]*?:).*?)(?:@([^@:]*))?")
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT_HASH = re.compile(r"[0-9a-f]{6,63}", re.IGNORECASE)
_USER = re.compile(r"(https?://)[^\s/@]*@")
_FOREIGN = re.compile(r"GIT_(DIR|WORK_TREE|INDEX_FILE|PREFIX|NAMESPACE|(OBJECT|COMMON)_.*)")

log = logging.getLogger("spsa.builds")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCommit:
    """The commit of a source at `place`, an address or a folder, and the ref that named it.

    No `place` has a password. `ref` is empty for a folder as it is, which may be `with_changes`.
    """

    place: str
    commit: str
    ref: str = ""
    with_changes: bool = False

    def __str__(self) -> str:
        short = self.commit[:10]
        named = short if self.ref in ("", self.commit) else f"{self.ref} ({short})"
        return f"{self.place} at {named}{', with changes' if self.with_changes else ''}"


def is_address(text: str) -> bool:
    """Whether a text is meant for git, and is no folder."""
    return _ANY_ADDRESS.match(text) is not None


def split(text: str) -> tuple[str, str]:
    """Address and ref of `ADDRESS[@REF]`."""
    found = _AT_REF.fullmatch(text)
    return (found[1], found[2] or DEFAULT_REF) if found else (text, DEFAULT_REF)


def shown(address: str) -> str:
    """A text with addresses without passwords, and of HTTP without users, who may be tokens."""
    return without_passwords(_USER.sub(r"\1", address))


def fault_of(address: str, ref: str) -> tuple[str, str] | None:
    """What is wrong with an address or a ref, without the password, and what would be right."""
    if without_passwords(address) != address:
        remedy = "leave it out, and give it to git: `git config credential.helper store`"
        return "the address holds a password", remedy
    if not _ADDRESS.fullmatch(address):
        right = "write https://HOST/PATH, ssh://, git://, file:///PATH or USER@HOST:PATH"
        return "the address is none of a repository", right
    if not _REF.fullmatch(ref):
        right = "name a branch, a tag, or a commit by its whole hash"
        return f'"{ref}" is no name of a commit', right
    return None


def checkout(address: str, ref: str = DEFAULT_REF) -> tuple[Path, SourceCommit]:
    """The folder of a clean checkout of what `ref` names in the repository, and its commit.

    Raises:
        InvalidInput: the address is none, or the repository has no such branch, tag or commit.
        RepositoryUnreachable: git cannot read it; has git's last words.
        BuildFailed: git is missing or failed in the checkout.
    """
    found = commit_at(address, ref)
    return _laid_out(_home(), address, found.commit), found


def commit_at(address: str, ref: str) -> SourceCommit:
    """What `ref` names in the repository now; raises as `checkout` does."""
    if fault := fault_of(address, ref):
        raise InvalidInput.of(shown(address), "source", *fault)
    return SourceCommit(place=shown(address), ref=ref, commit=resolve(address, ref))


def checkout_of(text: str) -> tuple[Path, SourceCommit]:
    """The checkout of `ADDRESS[@REF]`, or of `FOLDER@COMMIT` in a local work tree."""
    if is_address(text):
        return checkout(*split(text))
    folder, _, commit = text.rpartition("@")
    here = Path(folder).resolve()
    remedy = "write FOLDER@COMMIT, with a folder that is a work tree of git, and a commit of it"
    if not here.is_dir():
        raise InvalidInput.of(text, "source", "it is neither an address nor a folder", remedy)
    try:
        found = _git(here, "rev-parse", "--verify", f"{commit}^{{commit}}")
        top, inside = (_git(here, "rev-parse", f"--show-{x}") for x in ("toplevel", "prefix"))
    except BuildFailed as error:
        told = _last_line(error).replace("Needed a single revision", f'no commit "{commit}"')
        raise InvalidInput.of(text, "source", told, remedy) from None
    return _laid_out(_home(), top, found) / inside, SourceCommit(
        place=str(here), ref=commit, commit=found
    )


def commit_of(folder: Path) -> SourceCommit | None:
    """The commit that a work tree of git has, if the folder is a part of it."""
    with suppress(BuildFailed):
        commit = _git(folder, "rev-parse", "HEAD", "HEAD:./").split()[0]
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
        return SourceCommit(place=str(folder), commit=commit, with_changes=bool(changed))
    return None


@cache
def resolve(address: str, ref: str) -> str:
    """The hash of the commit that a ref names: in one process always the same.

    Where the repository cannot say it now, the last answer counts, with a warning.
    """
    if _HASH.fullmatch(ref.lower()):
        return ref.lower()
    last = _home() / "refs" / sha256(f"{address}\0{ref}".encode()).hexdigest()
    try:
        found = _asked(address, ref)
    except (BuildFailed, InvalidInput) as error:
        if not last.is_file():
            raise
        found = content(last, MAX_TEXT).decode().strip()
        log.warning("%s; %s was %s the last time", _last_line(error), ref, found[:10])
        return found
    last.parent.mkdir(exist_ok=True)
    write_whole(last, f"{found}\n".encode())
    return found


def _asked(address: str, ref: str) -> str:
    """The commit that a ref of the repository names, by git's own order of precedence."""
    words = "ls-remote", "--", address, ref, f"{ref}^{{}}"
    lines = _git(_home(), *words, address=address).splitlines()
    told = {name: commit for commit, name in map(str.split, lines)}
    for before in ("", "refs/", "refs/tags/", "refs/heads/"):
        for name in (f"{before}{ref}^{{}}", f"{before}{ref}"):  # a tag's commit, then itself
            if name in told:
                return told[name]
    if _SHORT_HASH.fullmatch(ref) and (commit := _abbreviated(address, ref)):
        return commit
    found, remedy = f'it has no branch or tag "{ref}"', "name one, or a commit by its whole hash"
    raise InvalidInput.of(shown(address), "source", found, remedy)


def _abbreviated(address: str, short: str) -> str:
    """The one commit whose hash begins so, or "": no server tells it, but all its refs do."""
    with tempfile.TemporaryDirectory() as draft:
        tree = Path(draft)
        _git(tree, "init", "-q", "--bare")
        _git(tree, "remote", "add", "origin", address)
        all_refs = "--filter=tree:0", "origin", "+refs/*:refs/origin/*"
        _git(tree, "fetch", "-q", *all_refs, address=address)
        with suppress(BuildFailed):
            return _git(tree, "rev-parse", "-q", "--verify", f"{short}^{{commit}}")
    return ""


@cache
def _laid_out(home: Path, address: str, commit: str) -> Path:
    """The checkout of a commit, made unless it is there: looked at once in a process."""
    place = home / commit
    if _is_as_made(place):
        return place
    with whole_folder(place) as tree:
        with suppress(FileNotFoundError):
            place.rename(tree.with_name("changed"))
        _fetch(address, commit, tree)
        _git(tree, "checkout", "-q", "--detach", commit)
        if (tree / ".gitmodules").is_file():
            _git(tree, "submodule", "update", "-q", "--init", "--recursive", address=address)
        (tree / _AS_MADE).write_text(_changes(tree), encoding="utf-8")
    return place


def _fetch(address: str, commit: str, tree: Path) -> None:
    """Make the repository of a new work tree, which has the commit."""
    _git(tree.parent, "init", "-q", tree.name)
    _git(tree, "remote", "add", "origin", address)
    try:
        _git(tree, "fetch", "-q", "--depth=1", "origin", commit, address=address)
    except BuildFailed:  # a server of plain files, or one that gives whole branches only
        _git(tree, "fetch", "-q", "origin", "+refs/*:refs/origin/*", address=address)
    try:
        _git(tree, "cat-file", "-e", f"{commit}^{{commit}}")
    except BuildFailed:
        found, remedy = f"it has no commit {commit}", "name a branch, a tag or a commit that it has"
        raise InvalidInput.of(shown(address), "source", found, remedy) from None


_AS_MADE = ".git/as-made"


def _is_as_made(place: Path) -> bool:
    """Whether a checkout is there and unchanged."""
    try:
        return content(place / _AS_MADE, MAX_TEXT).decode() == _changes(place)
    except (OSError, BuildFailed):
        return False


def _changes(tree: Path) -> str:
    """The commit and what differs: line ends perhaps, as attributes of the source want them."""
    return _git(tree, "status", "--porcelain=v2", "--branch", "--ignored", "-unormal")


def _home() -> Path:
    return private_folder(cache_folder() / "sources", "the cache of sources")


def _git(cwd: Path, *words: str, address: str = "") -> str:
    """What git says; RepositoryUnreachable names the `address` that it talks to."""
    environment = {name: v for name, v in os.environ.items() if not _FOREIGN.fullmatch(name)}
    is_local = address.startswith(("/", "file:"))  # then submodules may be local, too
    environment |= {
        "GIT_ALLOW_PROTOCOL": f"git:http:https:ssh{':file' if is_local else ''}",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",  # it writes nothing into a user's work tree
        "GIT_HTTP_LOW_SPEED_LIMIT": "1",
        "GIT_HTTP_LOW_SPEED_TIME": "60",
    }
    seconds = 60.0 if words[0] == "ls-remote" else 3600.0
    try:
        return Commands(environment).answer(["git", *words], cwd, seconds).strip()
    except BuildFailed as error:
        if not address or isinstance(error.__cause__, OSError):  # git itself is missing
            raise BuildFailed(shown(str(error))) from None
        said, place = " ".join(error.lines[1:] or error.lines), shown(address)
        raise RepositoryUnreachable(
            f"the repository {place} cannot be read ({shown(said).strip()}); check the address and "
            f"the network: `git ls-remote {place}` has to answer without asking for a password"
        ) from None


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1]
