"""``longleaf demo``: the whole method on the bundled laws, from raw text."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from longleaf import encoders
from longleaf.cli import _console
from longleaf.cli._encoder import reads_texts
from longleaf.datasets import Sample, load_sample
from longleaf.metrics import FrequencyBin, evaluate, frequency_table
from longleaf.plt import PLT
from longleaf.propensity import inverse_propensity_from_counts
from longleaf.suggest import Suggestion
from longleaf.tagger import Tagger, suggester_of
from longleaf.text.vectorizer import TextVectorizer

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

SEED = 1
PLACES = (1, 3, 5)
K = PLACES[-1]
TAILS = (0.0, 0.5, 1.0)
SHOWN = {
    0.0: "the likeliest concepts",
    1.0: "rare concepts count for more (PS-PLT)",
}
"""The values of tail for which a law's suggestions are shown."""
WIDEST = 100
NARROW = 90
"""Below this many columns, names of concepts are narrower, to leave space for the words."""
WORDS = 4


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Predictions for the test laws with one value of tail, and their metrics."""

    hits: npt.NDArray[np.bool_]
    gains: npt.NDArray[np.float64]
    metrics: dict[str, float]
    bins: list[FrequencyBin]


def demo(
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            metavar="NAME|FOLDER",
            help="Also show what a sentence encoder adds, such as minilm; the first time, this takes "
            "a minute or two more.",
            callback=reads_texts,
        ),
    ] = None,
) -> None:
    """Train on bundled EU laws, evaluate, and explain the tags of one law; takes under a minute."""
    console = _console.output()
    console.width = min(console.width, WIDEST)
    chosen = None if encoder is None else encoders.load(encoder)  # fail now if it cannot be loaded
    with _console.waiting("reading the laws"):
        sample = load_sample()
    console.print(
        f"\n[bold]longleaf[/] learns EuroVoc concepts from {len(sample.records_train):,} EU laws; "
        f"{len(sample.records_test):,} others are for testing.\n"
        "[dim]EURLEX57K, Chalkidis et al. 2019, CC BY-SA 4.0[/]\n"
    )
    steps = list(_steps(sample))
    start = time.perf_counter()
    known = {tag for tags in sample.tags_train for tag in tags}  # other names would betray the test laws
    names = {tag: name for tag, name in sample.names.items() if tag in known}
    with _console.progress_bar("training") as progress:
        tagger = Tagger(PLT(random_state=SEED), names=names)
        tagger.fit(sample.records_train, sample.tags_train, progress=progress)
    trained = time.perf_counter()
    with _console.waiting("tagging the test laws"):
        evaluations = _evaluate(tagger, sample)
    done = time.perf_counter()
    steps.append(("and the names of the concepts", evaluations))
    if chosen is not None:
        steps.append(_with_meaning(sample, names, chosen))
    model = tagger.estimator_
    console.print(
        f"trained  from raw text in [bold]{trained - start:.1f} s[/]: "
        f"{model.n_features_in_:,} terms, {model.n_labels_:,} concepts\n"
        f"tagged   the test laws in [bold]{(done - trained) / len(TAILS):.1f} s[/] "
        "for each value of tail\n\n"
        "[bold]Records, not bags of words.[/] A law has a title and a text; a concept has a name."
    )
    console.print(_what_is_read(steps))
    console.print("\n[bold]One model, one dial.[/] The weight of rare concepts is chosen at prediction.")
    console.print(_comparison(evaluations))
    console.print(
        "[dim]p@k       how many of the first k are right\n"
        "psp@k     the same, but a rare concept counts for more\n"
        f"recall@{K}  how many of the true ones are found: frequent concepts, and rarer ones[/]\n"
    )
    _show_law(console, tagger, sample, evaluations)


def _steps(sample: Sample) -> Iterator[tuple[str, list[Evaluation]]]:
    """Train with less: plain words, then fields; yield what each tagger reads, and its evaluations."""
    words = TextVectorizer(n_jobs=-1)
    steps = (
        ("words of title and text", Tagger(PLT(random_state=SEED), words), sample.texts_train),
        ("both fields, pieces of words", Tagger(PLT(random_state=SEED)), sample.records_train),
    )
    for name, tagger, laws in steps:
        with _console.progress_bar(f"training on {name}") as progress:
            tagger.fit(laws, sample.tags_train, progress=progress)
        with _console.waiting("tagging the test laws"):
            yield name, _evaluate(tagger, sample)


def _with_meaning(
    sample: Sample, names: dict[str, str], encoder: encoders.Encoder
) -> tuple[str, list[Evaluation]]:
    """Train with an encoder beside all that; embeddings are kept on disk."""
    with _console.progress_bar(f"training with {encoder.name}") as progress:
        count = None if progress is None else lambda number: progress.say(f"{number} laws embedded")
        tagger = Tagger(PLT(random_state=SEED), names=names, encoder=encoders.cached(encoder, count))
        tagger.fit(sample.records_train, sample.tags_train, progress=progress)
        evaluations = _evaluate(tagger, sample)
    return f"and what laws mean ({encoder.name})", evaluations


def _what_is_read(steps: Sequence[tuple[str, list[Evaluation]]]) -> Table:
    """Compare what taggers read: plain precision at tail 0, rare concepts at tail 1."""
    from rich import box
    from rich.table import Table

    table = Table("what is read", box=box.ROUNDED, header_style="bold")
    for heading in ("p@1", f"p@{K}", f"psp@{K}, tail 1", f"rare recall@{K}, tail 1"):
        table.add_column(heading, justify="right")
    for name, (plain, *_, rare) in steps:
        tail = next(one.recall for one in rare.bins if one.name == "tail")
        numbers = (plain.metrics["p@1"], plain.metrics[f"p@{K}"], rare.metrics[f"psp@{K}"], tail)
        table.add_row(name, *(f"{number:.1f}" for number in numbers))
    return table


def _evaluate(tagger: Tagger, sample: Sample) -> list[Evaluation]:
    """Tag the test laws with each value of tail."""
    model = tagger.estimator_
    suggester = suggester_of(tagger)
    X = suggester.rows(sample.records_test if suggester.fields else sample.texts_test)
    Y = tagger.transform_tags(sample.tags_test, unseen="add")
    counts = np.pad(model.label_counts_, (0, Y.shape[1] - model.n_labels_))
    inverse_propensity = inverse_propensity_from_counts(counts, model.n_rows_)
    true = Y.toarray() > 0
    evaluations = []
    for tail in TAILS:
        top = model.top_k(X, K, tail=tail)
        hits = np.take_along_axis(true, top.labels, axis=1)
        metrics = evaluate(Y, top, inverse_propensity=inverse_propensity, k=PLACES)
        gains = (hits * inverse_propensity[top.labels]).sum(axis=1)
        evaluations.append(Evaluation(hits, gains, metrics, frequency_table(Y, top, counts, k=K)))
    return evaluations


def _comparison(evaluations: Sequence[Evaluation]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table("in percent", box=box.ROUNDED, header_style="bold")
    for tail in TAILS:
        table.add_column(f"tail {tail:g}", justify="right")
    table.add_column("0 to 1", justify="right")
    for name in ("p", "psp"):
        for at in PLACES:
            table.add_row(f"{name}@{at}", *_cells([one.metrics[f"{name}@{at}"] for one in evaluations]))
        table.add_section()
    for bins in zip(*(one.bins for one in evaluations), strict=True):
        about = bins[0]
        if about.max_count:  # the names of others are not given
            counts = f"{about.labels:>5,} of {about.min_count} to {about.max_count} laws"
            heading = f"recall@{K} {about.name:<5} [dim]{counts}[/]"
            table.add_row(heading, *_cells([one.recall for one in bins]))
    return table


def _cells(values: list[float]) -> list[str]:
    change = values[-1] - values[0]
    colour = "green" if change > 0 else "red"
    return [f"{value:.1f}" for value in values] + [f"[{colour}]{change:+.1f}[/]"]


def _show_law(console: Any, tagger: Tagger, sample: Sample, evaluations: Sequence[Evaluation]) -> None:
    """Show the suggestions for the law that a higher tail helps most, with their words."""
    from rich.text import Text

    first, last = evaluations[0], evaluations[-1]
    more = last.hits.sum(axis=1) - first.hits.sum(axis=1)
    row = int((last.gains - first.gains).argmax())
    console.print(
        "[bold]A law from the test set[/], with the words that support each suggestion.\n"
        f"It is the one that the tail dial helps most. Of all {len(more):,}, tail 1 finds more concepts\n"
        f"than tail 0 for {(more > 0).sum()} laws, and fewer for {(more < 0).sum()}.\n"
    )
    console.print(Text(" ".join(sample.titles_test[row].split()), style="italic"))
    true, found = sample.tags_test[row], set()
    for tail, meaning in SHOWN.items():
        suggestions = tagger.suggest([sample.records_test[row]], K, tail=tail, explain=True)[0]
        found |= {one.tag for one in suggestions}
        console.print(f"\n[bold]tail {tail:g}[/]: {meaning}")
        console.print(_suggestions(tagger, suggestions, true, 26 if console.width < NARROW else 36))
    missed = [sample.names[tag] for tag in true if tag not in found]
    console.print(f"\n[green]✓[/] is right. Missed by both: {', '.join(missed) or 'none'}.\n")


def _suggestions(tagger: Tagger, suggestions: list[Suggestion], true: list[str], width: int) -> Table:
    from rich.table import Table

    counts = dict(zip(tagger.classes_, tagger.estimator_.label_counts_.tolist(), strict=True))
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("concept", min_width=width, max_width=width)
    table.add_column("laws", justify="right", min_width=4)
    table.add_column("probability", justify="right", min_width=11)
    table.add_column("words")
    for one in suggestions:
        right = one.tag in true
        table.add_row(
            "[green]✓[/]" if right else "",
            f"[bold]{one.name}[/]" if right else one.name,
            f"[dim]{counts[one.tag]}[/]",
            f"{one.probability:.3f}",
            _words(one),
        )
    return table


def _words(suggestion: Suggestion) -> Text:
    """Return the words, strongest first; those with at least half the largest effect are bold."""
    from rich.text import Text

    words = Text()
    for word, value in suggestion.words[:WORDS]:
        style = "bold green" if value >= suggestion.words[0][1] / 2 else "green"
        words.append(" " if words else "").append(word, style=style)
    return words
