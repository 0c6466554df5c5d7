"""Options that list values to try, and the table of results."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longleaf.cli import _console
from longleaf.cli._training import LARGEST, MOST_TREES, Loss, TreeKind
from longleaf.tuning.tune import Trial, Tuning

if TYPE_CHECKING:
    from rich.table import Table

PANEL = "Values to try, separated by commas"
OPTIONS = {
    "loss": "--loss",
    "C": "-C",
    "arity": "--arity",
    "max_leaf": "--max-leaf",
    "n_trees": "--trees",
    "threshold": "--threshold",
    "tree": "--tree",
    "fields": "--field",
    "encoder_weight": "--encoder-weight",
}


def _listed(name: str, help: str) -> Any:
    return typer.Option(OPTIONS[name], metavar="V,…", help=help, rich_help_panel=PANEL)


def listed_values(
    trees: Annotated[str | None, _listed("n_trees", "Numbers of trees; default: 1,3.")] = None,
    loss: Annotated[str | None, _listed("loss", "Losses; default: log,squared-hinge.")] = None,
    cost: Annotated[
        str | None,
        _listed("C", "Costs of an error; default: 4 to 64 for log, 0.25 to 4 for squared-hinge."),
    ] = None,
    arity: Annotated[str | None, _listed("arity", "Children per inner node; default: 2,8,16,32.")] = None,
    max_leaf: Annotated[
        str | None,
        _listed("max_leaf", "Maximum labels per leaf cluster; default: 20,50,100,200."),
    ] = None,
    threshold: Annotated[
        str | None,
        _listed("threshold", "Drop weights of smaller magnitude from the model; default: 0.05,0.1."),
    ] = None,
    tree: Annotated[str | None, _listed("tree", "How trees are built; default: kmeans.")] = None,
) -> dict[str, list[Any]]:
    """Parse the given lists, before any data are read."""
    given = {
        "loss": (loss, _choice([one.value for one in Loss])),
        "C": (cost, _number(0, above=True)),
        "arity": (arity, _whole(2, LARGEST)),
        "max_leaf": (max_leaf, _whole(1, LARGEST)),
        "n_trees": (trees, _whole(1, MOST_TREES)),
        "threshold": (threshold, _number(0)),
        "tree": (tree, _choice([one.value for one in TreeKind])),
    }
    found = {name: _read(name, text, read) for name, (text, read) in given.items() if text is not None}
    if "merged" in found.get("tree", []) and any(one & (one - 1) for one in found.get("arity", [])):
        raise typer.BadParameter("--arity must be powers of two with --tree merged.")
    return found


def _read(name: str, text: str, read: Callable[[str], Any]) -> list[Any]:
    return [read_one for item in text.split(",") for read_one in [_read_one(name, item.strip(), read)]]


def _read_one(name: str, item: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(item)
    except ValueError as error:
        raise typer.BadParameter(f"{OPTIONS[name]} must list {error}; got {item!r}.") from None


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(item: str) -> int:
        if not item.isdecimal() or not low <= int(item) <= high:
            raise ValueError(f"whole numbers from {low} to {high}")
        return int(item)

    return read


def _number(low: float, above: bool = False) -> Callable[[str], float]:
    def read(item: str) -> float:
        try:
            number = float(item)
        except ValueError:
            number = math.nan
        if not low <= number < math.inf or (above and number == low):
            raise ValueError(f"finite numbers {'above' if above else 'of at least'} {low:g}")
        return number

    return read


def _choice(choices: list[str]) -> Callable[[str], str]:
    def read(item: str) -> str:
        if item not in choices:
            raise ValueError(f"some of {', '.join(choices)}")
        return item

    return read


def show(found: Tuning) -> None:
    """Print what was tried, what was chosen and why."""
    console = _console.output()
    console.print(_table(found))
    console.print(f"chosen   {as_options(found.settings)}", soft_wrap=True)
    for line in reasons(found):
        console.print(line, soft_wrap=True)


def reasons(found: Tuning) -> list[str]:
    """Explain in a few lines why these settings were chosen."""
    change = found.difference
    dial = f" with tail {found.tail:g}" if found.tail else ""
    lines = [f"because  {found.metric} is {found.value:.2f} on {found.dev_rows} validation rows{dial}"]
    if found.settings == found.start:
        return [*lines, "         and no other candidate is better than the starting settings."]
    verdict = "clear" if change.is_clear else "may be chance"
    interval = f"{change.difference:+.2f}, 95 % between {change.low:+.2f} and {change.high:+.2f}: {verdict}"
    return [*lines, f"         and {change.a:.2f} with the starting settings ({interval})."]


def as_options(settings: dict[str, Any]) -> str:
    """Return settings as options of ``longleaf train``."""
    pairs = [
        (name, one)
        for name, value in settings.items()
        for one in (_short(value).split(" ") if name == "fields" else [_short(value)])
    ]
    return " ".join(f"{OPTIONS[name]} {value}" for name, value in pairs)


def _table(found: Tuning) -> Table:
    """List each setting once with its result in each rung; those that reached the last rung come first."""
    from rich import box
    from rich.table import Table

    sizes = sorted({trial.rows for trial in found.trials})
    title = f"{found.metric} of each setting, by number of training rows"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("", *(OPTIONS[name].lstrip("-") for name in found.settings)):
        table.add_column(heading, no_wrap=True)
    for heading in (*map(str, sizes), "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    by_candidate: dict[int, list[Trial]] = {}
    for trial in found.trials:
        by_candidate.setdefault(trial.candidate, []).append(trial)
    for trials in sorted(
        by_candidate.values(), key=lambda own: (-len(own), -own[-1].value, own[-1].candidate)
    ):
        settings = trials[0].settings
        chosen = settings == found.settings
        remark = "chosen" if chosen else "start" if settings == found.start else ""
        values = [f"{trial.value:.2f}" for trial in trials] + [""] * (len(sizes) - len(trials))
        seconds = f"{sum(trial.seconds for trial in trials):.1f}"
        cells = (remark, *(_cell(value) for value in settings.values()), *values, seconds)
        table.add_row(*cells, style="bold" if chosen else "")
    return table


def _cell(value: Any) -> str:
    """Return a value as it stands in the table: of weights only the numbers."""
    return " ".join(f"{weight:g}" for weight in value.values()) if isinstance(value, dict) else _short(value)


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={weight:g}" for name, weight in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)
