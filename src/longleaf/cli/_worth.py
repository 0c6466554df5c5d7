"""What labels are worth: ``--tail``, ``--gain`` and ``--utility``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from longleaf.cli import _options
from longleaf.cli._data import open_source
from longleaf.cli._tables import load_gains
from longleaf.search.utility import LARGEST_UTILITY
from longleaf.suggest import Suggester
from longleaf.text.utilities import read_utility


@dataclass(frozen=True)
class Worth:
    """The dial, or a file that says it label by label."""

    tail: float | None
    gain: str | None
    utility: str | None
    min_utility: float | None

    @property
    def files(self) -> list[str | None]:
        """The files, as given."""
        return [self.gain, self.utility]

    @property
    def is_probability(self) -> bool:
        """Whether every label is worth its probability."""
        return not self.tail and self.gain is None and self.utility is None

    def described(self, score: float) -> str | None:
        """Return a score and where it comes from; None if it is the probability."""
        if self.is_probability:
            return None
        return f"{score:.4g} with this {'tail' if self.tail else 'gain' if self.gain else 'utility'}"

    def arguments(self, suggester: Suggester) -> dict[str, Any]:
        """Read the file, if there is one, and return the arguments of a query."""
        if self.utility is not None:
            utility = read_utility(open_source(self.utility), suggester.tags)
            return {"utility": utility, "threshold": self.min_utility}
        return {"tail": self.tail, "gain": None if self.gain is None else load_gains(self.gain, suggester)}


def worth_settings(
    tail: _options.Tail = None,
    gain: _options.Gain = None,
    utility: Annotated[
        str | None,
        typer.Option(
            "--utility",
            metavar="FILE",
            help="What each label is worth, a * probability + b: a table of tag, a, b, allowed, group and "
            "quota, or JSON; * is every other tag.",
            callback=_options.not_empty,
        ),
    ] = None,
    min_utility: Annotated[
        float | None,
        typer.Option(
            "--min-utility",
            metavar="U",
            help="Return no label that is worth less; needs --utility.",
        ),
    ] = None,
) -> Worth:
    """Return what was given; it must be one thing."""
    given = {"--tail": tail, "--gain": gain, "--utility": utility}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise typer.BadParameter(f"{' and '.join(names)} cannot be given together.")
    if min_utility is not None and utility is None:
        raise typer.BadParameter("--min-utility needs --utility.")
    if min_utility is not None and not abs(min_utility) <= LARGEST_UTILITY:
        most = f"{LARGEST_UTILITY:g}"
        raise typer.BadParameter(
            f"--min-utility must be a number from -{most} to {most}; got {min_utility:g}."
        )
    return Worth(tail, gain, utility, min_utility)
