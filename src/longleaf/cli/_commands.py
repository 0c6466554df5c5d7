"""How commands and groups of commands show their options."""

from __future__ import annotations

from typing import Any

import typer.core


def _with_plain_flags(parameters: list[Any]) -> list[Any]:
    """Show flags in the help as they are typed, without a type for the value that they do not take."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class Command(typer.core.TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, for the help and for parsing."""
        return _with_plain_flags(super().get_params(ctx))


class Group(typer.core.TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, for the help and for parsing."""
        return _with_plain_flags(super().get_params(ctx))
