"""Runs compilers and other programs, each with a deadline; what is special to cargo."""

import json
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from spsa.errors import BuildFailed, InvalidInput, TuningError
from spsa.uci import system
from spsa.uci.process import kill

_SHOWN_LINES = 60
_ANSWER_SECONDS = 120.0
_SECRET = re.compile(r"DATABASE_URL.*|SPSA_.*|PG[A-Z]+")
_BY_MAKE = re.compile(r"(?m)^g?make(?:\[\d+\])?: .*$")
"""What make adds to what a command of its own has said."""
_FLAGS_OF_TARGET = re.compile(r"^\s*\[target\.[^\n]*\n[^\[]*?^\s*rustflags\b", re.MULTILINE)


class BuildCancelled(TuningError):
    """The build was stopped by `cancel`; the source may be fine."""

    exit_code = 130


class Commands:
    """Runs programs for any number of threads; after `stop` none runs and none starts.

    They get the environment without the variables that give access to the database, because a build
    runs programs of the source. On Linux each ends with the thread that runs it, and so with a
    process that is killed; compilers that it has started finish their file.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = {k: v for k, v in environment.items() if not _SECRET.fullmatch(k)}
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = threading.Event()
        self._guard = threading.Lock()

    def stop(self) -> None:
        with self._guard:
            self._stopped.set()
            for process in self._running:
                _kill(process)

    def wait(self, seconds: float = 0.0) -> None:
        """Sleep; raises BuildCancelled as soon as `stop` is called."""
        if self._stopped.wait(seconds):
            raise BuildCancelled("the build was stopped")

    def run(
        self,
        argv: Sequence[str],
        cwd: Path,
        logs: Path,
        timeout: float,
        note: str = "",
        given: bytes = b"",
    ) -> str:
        """Run `argv` in `cwd` with the input `given`; its output, which is also left in `logs`.

        The output goes to files, so that a daemon which the program starts (a compiler cache)
        cannot hold the caller by keeping a pipe open. Raises BuildFailed if the program is not
        there, does not end within `timeout` seconds, or fails, with its errors and the `note`.
        """
        logs.mkdir(exist_ok=True)
        files, words = (logs / "stdout.log", logs / "stderr.log"), " ".join(argv[:2])
        (logs / "stdin").write_bytes(given)
        with (
            (logs / "stdin").open("rb") as stdin,
            files[0].open("wb") as stdout,
            files[1].open("wb") as stderr,
        ):
            process = self._start(argv, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired as late:
            raise BuildFailed(f"`{words}` had not ended after {timeout:g} seconds") from late
        finally:
            with self._guard:
                _kill(process)
                self._running.discard(process)
            process.wait()
        self.wait()
        output, errors = (file.read_text(encoding="utf-8", errors="replace") for file in files)
        if process.returncode != 0:
            found = _errors(errors if _BY_MAKE.sub("", errors).strip() else output + errors)
            raise BuildFailed(f"`{words}` ended with {process.returncode}\n{found}{note}")
        return output

    def answer(
        self, argv: Sequence[str], cwd: Path, timeout: float = _ANSWER_SECONDS, given: bytes = b""
    ) -> str:
        """The output of a program that leaves no logs."""
        with tempfile.TemporaryDirectory() as logs:
            return self.run(argv, cwd, Path(logs), timeout, given=given)

    def _start(self, argv: Sequence[str], **where: Any) -> subprocess.Popen[bytes]:
        with self._guard:
            self.wait()
            try:
                process = subprocess.Popen(
                    argv,
                    env=self.environment,
                    start_new_session=True,
                    preexec_fn=partial(system.bind_engine, os.getpid(), isolated=False),
                    **where,
                )
            except FileNotFoundError as error:
                rust = " Rust (https://rustup.rs)" if argv[0] in ("cargo", "rustc") else " it"
                remedy = f"install{rust}, or put the directory that has it into PATH"
                raise BuildFailed(f"`{argv[0]}` is not found; {remedy}") from error
            except OSError as error:
                raise BuildFailed(f"`{argv[0]}` cannot be started: {error.strerror}") from error
            self._running.add(process)
            return process


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group of a process that still runs."""
    if process.poll() is None:
        kill(process)


def configurations_around(work: Path) -> list[str]:
    """The configuration of cargo that a build below `work` reads besides that of the source."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    folders = {home.resolve(), *(folder / ".cargo" for folder in (work, *work.parents))}
    paths = (folder / name for folder in sorted(folders) for name in ("config", "config.toml"))
    return [p.read_text(encoding="utf-8", errors="replace") for p in paths if p.is_file()]


def refuse_unbuildable(source: Path) -> None:
    """Raise InvalidInput if cargo could not build a copy of this folder alone."""
    if not (source / "Cargo.toml").is_file():
        remedy = "name the directory that holds the engine's Cargo.toml"
        raise InvalidInput.of(source, "source_path", "there is no Cargo.toml here", remedy)
    if (root := workspace_of(source)) is not None:
        raise InvalidInput.of(
            source,
            "source_path",
            f"this crate is a member of the workspace {root}, whose profiles it would lose",
            f'set source_path to "{root}" and name the engine with `package`',
        )


def workspace_of(crate: Path) -> Path | None:
    """The folder of the workspace that cargo finds around this crate."""
    words = ["cargo", "locate-project", "--workspace", "--message-format", "plain"]
    try:
        found = Path(Commands(os.environ).answer(words, crate).strip()).parent
    except BuildFailed:
        return None
    return None if found == crate.resolve() else found


def level_flags(
    level: str, environment: Mapping[str, str], configured: Sequence[str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The variables and the words of the command line with which cargo builds for a level.

    `configured` are the texts of all configuration that cargo reads. It takes flags from the first
    of these places that has any, and rustc the last processor that they name: two variables,
    `target.*.rustflags`, `build.rustflags`
    (https://doc.rust-lang.org/cargo/reference/config.html#buildrustflags).
    """
    flag = f"-Ctarget-cpu={level}"
    for name, between in (("CARGO_ENCODED_RUSTFLAGS", "\x1f"), ("RUSTFLAGS", " ")):
        if written := environment.get(name):
            return {name: f"{written}{between}{flag}"}, ()
    if any(map(_FLAGS_OF_TARGET.search, configured)):
        # of the targets that fit, cargo takes the flags of the last name last
        return {}, ("--config", f'target."cfg(unix)".rustflags=["{flag}"]')
    name = "CARGO_BUILD_RUSTFLAGS"
    return {name: f"{environment.get(name, '')} {flag}".strip()}, ()


def _errors(said: str) -> str:
    """What a compiler said from the first line that begins as an error, else the end of it."""
    lines = said.partition("\nStack backtrace:")[0].strip().splitlines()  # of RUST_BACKTRACE
    first = (i for i, line in enumerate(lines) if line.startswith("error"))
    begin = next(first, max(0, len(lines) - _SHOWN_LINES))
    return "\n".join(lines[begin : begin + _SHOWN_LINES])


def declared_binaries(metadata: str, package: str | None) -> list[str]:
    """The binaries that `cargo metadata` names of a package, else of all that are built together.

    Those that need features may be left out of a build, so they are left out here.
    """
    found = json.loads(metadata)
    members = found.get("workspace_default_members", found["workspace_members"])
    return [
        target["name"]
        for one in found["packages"]
        if (one["name"] == package if package else one["id"] in members)
        for target in one["targets"]
        if "bin" in target["kind"] and not target.get("required-features")
    ]


def refuse_several(binaries: Collection[str], manifest: Path) -> None:
    """Raise InvalidInput with their names if a source has more binaries than one, or none."""
    if len(binaries) != 1:
        names = ", ".join(sorted(binaries))
        remedy = f"name one of: {names}" if names else "name an engine's source"
        found = f"the source has {len(binaries)} binaries"
        raise InvalidInput.of(manifest, "binary", found, remedy)


def made(stdout: str, target: Path, manifest: Path) -> tuple[Path, str | None]:
    """The one binary that cargo made in its folder `target`, and its triple if not the host's."""
    messages = (json.loads(line) for line in stdout.splitlines() if line.startswith("{"))
    artifacts = (one for one in messages if one["reason"] == "compiler-artifact")
    found = {
        one["target"]["name"]: Path(one["executable"])
        for one in artifacts
        if one["executable"] and "bin" in one["target"]["kind"]
    }
    refuse_several(found, manifest)
    (executable,) = found.values()
    # `target/<profile>/x` was made for the host, `target/<triple>/<profile>/x` was not
    parts = executable.resolve().relative_to(target.resolve()).parts
    return executable, parts[0] if len(parts) > 2 else None
