"""``longleaf demo``: the whole method on data inside the package."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from longleaf.cli import _console
from longleaf.datasets import Sample, load_sample
from longleaf.metrics import FrequencyBin, evaluate, frequency_table
from longleaf.plt import PLT
from longleaf.propensity import inverse_propensity_from_counts

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

SEED = 1
PLACES = (1, 3, 5)
K = PLACES[-1]
TAILS = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Judged:
    """What one setting of the dial answered on the test rows, and how good that is."""

    labels: npt.NDArray[np.int32]
    metrics: dict[str, float]
    bins: list[FrequencyBin]


def demo() -> None:
    """Train and judge on data inside the package, in under a minute: PLT beside PS-PLT."""
    console = _console.output()
    start = time.perf_counter()
    sample = load_sample()
    n_train, n_test = sample.X_train.shape[0], sample.X_test.shape[0]
    console.print(
        f"\n[bold]longleaf[/] on {n_train} EU laws, {sample.X_train.shape[1]} words and "
        f"{len(sample.label_names)} EuroVoc concepts (EURLEX57K, CC BY-SA 4.0);\n"
        f"judged on {n_test} laws that it has not seen."
    )
    with _console.progress_bar("training 3 trees") as progress:
        model = PLT.paper(random_state=SEED).fit(sample.X_train, sample.Y_train, progress=progress)
    trained = time.perf_counter()
    worth = inverse_propensity_from_counts(model.label_counts_, model.n_rows_)
    judged = [_judge(model, sample, worth, tail) for tail in TAILS]
    done = time.perf_counter()
    console.print(_comparison(judged))
    console.print(
        "[dim]psp@k counts a hit on a rare concept for more. One model, trained once: only the dial moved.\n"
        f"Read and trained in {trained - start:.1f} s, two exact searches of {n_test} laws in "
        f"{done - trained:.1f} s.[/]\n\n"
        "What it suggests for a law; behind each concept the number of training laws that have it."
    )
    gained = [(np.append(worth, 0.0)[one.labels] * _hits(sample, one.labels)).sum(axis=1) for one in judged]
    change = gained[1] - gained[0]
    for row, remark in (
        (int(change.argmax()), "\nOf all unseen laws, the dial helps most here"),
        (int(change.argmin()), "\nand costs most here"),
    ):
        console.print(_law(sample, model.label_counts_, judged, row, remark))


def _judge(model: PLT, sample: Sample, worth: npt.NDArray[np.float64], tail: float) -> Judged:
    top = model.top_k(sample.X_test, K, tail=tail)
    return Judged(
        top.labels,
        evaluate(sample.Y_test, top, inverse_propensity=worth, k=PLACES),
        frequency_table(sample.Y_test, top, model.label_counts_, k=K),
    )


def _hits(sample: Sample, labels: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Say of each suggested label [rows, k] whether its row has it."""
    rows = np.arange(len(labels))[:, None]
    found: npt.NDArray[np.bool_] = sample.Y_test.toarray()[rows, labels] > 0
    return found & (labels >= 0)


def _comparison(judged: list[Judged]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table("in percent", box=box.ROUNDED, header_style="bold")
    for heading in ("PLT\ntail 0", "PS-PLT\ntail 1", "change"):
        table.add_column(heading, justify="right")
    for name in ("p", "psp"):
        for at in PLACES:
            table.add_row(f"{name}@{at}", *_cells(*(one.metrics[f"{name}@{at}"] for one in judged)))
        table.add_section()
    for plain, scored in zip(*(one.bins for one in judged), strict=True):
        if plain.max_count:  # nobody can learn a label that training never saw
            counts = f"{plain.labels} labels of {plain.min_count} to {plain.max_count} laws"
            table.add_row(f"recall@{K}, {plain.name}: [dim]{counts}[/]", *_cells(plain.recall, scored.recall))
    return table


def _cells(plain: float, scored: float) -> tuple[str, str, str]:
    change = scored - plain
    colour = "green" if change > 0 else "red"
    return f"{plain:.1f}", f"{scored:.1f}", f"[{colour}]{change:+.1f}[/]"


def _law(
    sample: Sample, counts: npt.NDArray[np.int64], judged: list[Judged], row: int, remark: str
) -> RenderableType:
    """Show a law's suggestions under both dials beside its true concepts."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    true = sample.Y_test[row].indices
    true = true[np.argsort(-counts[true], kind="stable")]
    columns = [*(one.labels[row] for one in judged), true]
    table = Table("tail 0 suggests", "tail 1 suggests", "true concepts", box=box.ROUNDED)
    for place in range(max(len(column) for column in columns)):
        cells = (column[place] if place < len(column) else -1 for column in columns)
        table.add_row(*(_concept(sample, counts, int(label), label in true) for label in cells))
    title = Text(" ".join(sample.titles_test[row].split()), style="italic")
    return Group(Text(f"{remark}:"), title, table)


def _concept(sample: Sample, counts: npt.NDArray[np.int64], label: int, right: bool) -> Text:
    from rich.text import Text

    if label < 0:
        return Text()
    cell = Text("✓ " if right else "  ", style="green" if right else "")
    return cell.append(f"{sample.label_names[label]} ").append(f"({counts[label]})", style="dim")
