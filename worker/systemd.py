"""`compete --systemd`: the unit of a worker with the options of this command line."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.core import ParameterSource

from worker.connection import server_address
from worker.settings import Settings

_LEFT_OUT = ("spsa", "systemd", "server", "database_url")
_HOMES = ("/home/", "/root/", "/run/user/")
_EXTRA_STOP_SECONDS = 15
_PLAIN = re.compile(r"[-\w./:=@+,]+", re.ASCII)

_SECRET_STEPS = """\
#   install -d -m 755 /etc/spsa
#   install -m 600 /dev/null /etc/spsa/compete.env    (then write a line into it: {secret})
"""
_ROOT_WARNING = """\
# Engines run as this user: one that owns nothing else is better than root.
"""
_UNIT = """\
# Save this as /etc/systemd/system/compete.service, then:
{secret_steps}#   systemctl daemon-reload && systemctl enable --now compete
{root_warning}
[Unit]
Description=Plays games for tuning runs
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
User={user}
WorkingDirectory={folder}
CacheDirectory=spsa
CacheDirectoryMode=0700
Environment=XDG_CACHE_HOME=/var/cache/spsa
{environment_file}ExecStart={command}

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
ProtectHome={home}
{writable}
[Install]
WantedBy=multi-user.target
"""


def unit(context: click.Context, settings: Settings, folder: Path, user: str) -> str:
    """The text of the unit; `folder` is where the worker works, and `user` starts it.

    The token or the URL of the database is not in it: systemd reads them from a file that only root
    can read.
    """
    server, cache = server_address(settings, os.environ), settings.engines_cache
    program = _program()
    words = [*program, *(["--server", server] if server else ["--spsa"]), *_options(context)]
    writable = [str(Path(program[-1]).parent)] if server and program[-1].endswith(".pyz") else []
    writable += [str(cache.absolute())] if cache else []
    needs_secret = settings.token_file is None and settings.database_url_file is None
    secret = "SPSA_TOKEN=..." if server else "DATABASE_URL=..."
    has_home = any(word.startswith(_HOMES) for word in (*words, str(folder)))
    return _UNIT.format(
        secret_steps=_SECRET_STEPS.format(secret=secret) if needs_secret else "",
        environment_file="EnvironmentFile=/etc/spsa/compete.env\n" if needs_secret else "",
        root_warning=_ROOT_WARNING if user == "root" else "",
        user=user,
        folder=str(folder).replace("%", "%%"),
        command=" ".join(map(_quoted, words)),
        stop=int(settings.drain) + _EXTRA_STOP_SECONDS,
        home="read-only" if has_home else "yes",
        writable="".join(f"ReadWritePaths={_quoted(path)}\n" for path in writable),
    )


def _program() -> list[str]:
    """How this process was started, with absolute paths: Python, and its script or zipapp."""
    script = Path(sys.argv[0]).absolute()
    if script.name == "__main__.py":  # python -m worker
        return [sys.executable, "-m", "worker"]
    return [sys.executable, str(script)]


def _options(context: click.Context) -> Iterator[str]:
    """The options that were given, with absolute paths, as words of a command line."""
    for option in context.command.params:
        name, flag = option.name or "", option.opts[-1]
        source = context.get_parameter_source(name)
        if source is not ParameterSource.COMMANDLINE or name in _LEFT_OUT:
            continue
        if isinstance(option, click.Option) and option.is_flag:
            yield flag
            continue
        value = context.params[name]
        for each in value if option.multiple else (value,):
            yield from (flag, str(each.absolute()) if isinstance(each, Path) else str(each))


def _quoted(word: str) -> str:
    """A word as systemd reads it, with its specifiers and variables as they are written."""
    if _PLAIN.fullmatch(word):
        return word
    text = word.replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{text}"'
