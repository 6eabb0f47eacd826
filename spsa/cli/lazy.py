"""A command group that imports a command only when it is called."""

import importlib
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import click

Table = Mapping[str, tuple[str, str]]
"""A command's name -> the module that has it, as an attribute of that name, and its summary."""


class LazyGroup(click.Group):
    def __init__(self, *arguments: Any, table: Table, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        command = getattr(importlib.import_module(self.table[cmd_name][0]), cmd_name)
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.table
        if args and args[0] not in known and (close := get_close_matches(args[0], known)):
            ctx.fail(f"No such command {args[0]!r}: did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)
