"""`compete --systemd`: the unit of a worker with the options of this command line."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from worker.settings import server_address

_SECRETS = Path("/etc/spsa/compete.env")
_LEFT_OUT = ("spsa", "systemd", "server", "database_url")
_HOMES = ("/home", "/root", "/run/user")
_CACHE = "/var/cache/spsa"
_EXTRA_STOP_SECONDS = 15
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@+,")


def unit(context: click.Context, folder: Path, user: str) -> str:
    """The text of the unit; `folder` is where the worker works, and `user` starts it.

    The token or the URL of the database is not in it: systemd reads them from a file that only root
    can read.
    """
    given = context.params
    server = server_address(given, os.environ)
    program, options = _program(), list(_options(context))
    words = [*program, *(["--server", server] if server else ["--spsa"]), *options]
    writable = [str(Path(program[-1]).parent)] if server and program[-1].endswith(".pyz") else []
    writable += [str(given["engines_cache"].absolute())] if given["engines_cache"] else []
    has_home = any(word.startswith(home + "/") for word in (*words, str(folder)) for home in _HOMES)
    secret = "SPSA_TOKEN=..." if server else "DATABASE_URL=..."
    needs_secret = given["token_file"] is None and given["database_url_file"] is None
    lines = [
        *_head(secret if needs_secret else None, user),
        "",
        "[Service]",
        "Type=exec",
        f"User={user}",
        f"WorkingDirectory={_escaped(str(folder))}",
        f"CacheDirectory={Path(_CACHE).name}",
        "CacheDirectoryMode=0700",
        f"Environment=XDG_CACHE_HOME={_CACHE}",
        *([f"EnvironmentFile={_SECRETS}"] if needs_secret else []),
        f"ExecStart={' '.join(map(_quoted, words))}",
        *_END.format(stop=int(given["drain"]) + _EXTRA_STOP_SECONDS).splitlines(),
        f"ProtectHome={'read-only' if has_home else 'yes'}",
        *(f"ReadWritePaths={_quoted(path)}" for path in writable),
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines) + "\n"


def _head(secret: str | None, user: str) -> Iterator[str]:
    """What to do with the unit, and what it is."""
    yield "# Save this as /etc/systemd/system/compete.service, then:"
    if secret is not None:
        yield f"#   install -d -m 755 {_SECRETS.parent}"
        yield f"#   install -m 600 /dev/null {_SECRETS}    (then write a line into it: {secret})"
    yield "#   systemctl daemon-reload && systemctl enable --now compete"
    if user == "root":
        yield "# Engines run as this user: one that owns nothing else is better than root."
    yield ""
    yield "[Unit]"
    yield "Description=Plays games for tuning runs"
    yield "Wants=network-online.target"
    yield "After=network-online.target"


_END = """
# SIGTERM is for the worker alone, which ends its engines itself; whatever is left goes at the end
KillSignal=SIGTERM
KillMode=mixed
TimeoutStopSec={stop}

# not again after 2 (wrong options, or a token that was revoked) and 3 (no work wanted)
Restart=on-failure
RestartSec=10
RestartPreventExitStatus=2 3
SuccessExitStatus=130

# an engine that takes too much memory is a void game, not the end of the worker
OOMPolicy=continue
LimitCORE=0

# Engines have namespaces and a /proc of their own, which these would prevent: RestrictNamespaces=,
# ProtectProc=, ProtectKernelTunables=, ProtectKernelLogs=
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
UMask=0077
"""


def _program() -> list[str]:
    """How this process was started, with absolute paths: Python, and its script or zipapp."""
    script = Path(sys.argv[0]).absolute()
    if script.name == "__main__.py":  # python -m worker
        return [sys.executable, "-m", "worker"]
    return [sys.executable, str(script)]


def _options(context: click.Context) -> Iterator[str]:
    """The options that were given, with absolute paths, as words of a command line."""
    for option in context.command.params:
        name = option.name or ""
        source = context.get_parameter_source(name)
        if source is ParameterSource.COMMANDLINE and name not in _LEFT_OUT:
            yield from _words(option, context.params[name])


def _words(option: click.Parameter, value: Any) -> Iterator[str]:
    flag = option.opts[-1]
    if isinstance(option, click.Option) and option.is_flag:
        yield flag
        return
    for each in value if option.multiple else (value,):
        yield flag
        yield str(each.absolute()) if isinstance(each, Path) else str(each)


def _escaped(text: str) -> str:
    """With systemd's specifiers and variables as they are written."""
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    """A word of ExecStart= as systemd reads it."""
    if word and set(word) <= _PLAIN:
        return word
    text = _escaped(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{text}"'
