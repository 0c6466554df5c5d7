"""``longleaf plan``."""

from __future__ import annotations

import inspect
import json
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from longleaf._planning.sampling import Clock
from longleaf._tagging.tags import TagCollector
from longleaf.cli import _console, _vectorizer
from longleaf.cli._tables import given, open_table, report
from longleaf.cli._training import is_table, load_labelled
from longleaf.cli.train import _make_estimator, train
from longleaf.plan import Plan
from longleaf.plan import plan as plan_training
from longleaf.text import TextVectorizer

TREE_OPTIONS = (
    "preset",
    "trees",
    "loss",
    "cost",
    "arity",
    "max_leaf",
    "tree",
    "threshold",
    "seed",
    "threads",
    "model",
)
TEXT_OPTIONS = ("text", "tags", "separator")
WORD_OPTIONS = ("analyzer", "ngrams", "chars", "min_df", "max_df", "max_features", "hashing", "keep_case")


def plan(data: str, as_json: bool = False, memory: str | None = None, **options: Any) -> None:
    """Say what training on DATA will take: nodes, rows per level, memory, size and time."""
    clock = Clock()
    chosen = given(
        n_trees=options["trees"],
        loss=options["loss"],
        C=options["cost"],
        arity=options["arity"],
        max_leaf=options["max_leaf"],
        tree=options["tree"],
    )
    if options["threshold"] is not None:
        chosen["threshold"] = options["threshold"]
    estimator = _make_estimator(
        options["model"], options["preset"], chosen, options["seed"], options["threads"]
    )
    words = _vectorizer.vectorizer_settings(**{name: options[name] for name in WORD_OPTIONS})
    fields = given(**{name: options[name] for name in TEXT_OPTIONS})
    if is_table(data, fields | given(strict=options["strict"]) | _vectorizer.named_option(words)):
        X, Y = _read_texts(data, fields, options["strict"], TextVectorizer(**words, n_jobs=estimator.n_jobs))
    else:
        rows = load_labelled(data)
        X, Y = rows.X, rows.Y
    reading, before = clock.seconds(), _console.peak_memory()
    with _console.waiting("planning"):
        found = plan_training(X, Y, estimator, memory=memory)
    found = replace(found, seconds=found.seconds + reading, memory_bytes=max(found.memory_bytes, before))
    typer.echo(json.dumps(asdict(found)) if as_json else _in_words(found))


def _read_texts(
    path: str, fields: dict[str, Any], strict: bool, vectorizer: TextVectorizer
) -> tuple[Any, Any]:
    collector = TagCollector()
    with open_table(path, fields, strict=strict) as reader:
        X = vectorizer.fit_transform(collector.texts(reader))
    report(reader)
    return X, collector.sorted_indicator()[1]


def _in_words(found: Plan) -> str:
    lines = [f"{'level':>5} {'nodes':>10} {'rows':>12}"]
    lines += [f"{level.depth:>5} {level.nodes:>10,} {level.rows:>12,}" for level in found.levels]
    threads = f"{found.threads} thread{'s' if found.threads > 1 else ''}"
    on_disk = "weights and working copies" if found.means.scratch else "weights"
    lines += [
        "",
        f"nodes        {found.nodes:,} in {found.trees} tree{'s' if found.trees > 1 else ''}",
        f"peak memory  {_console.in_words(found.memory_bytes)}"
        + (f", with {on_disk} on disk" if found.means.spill else ""),
        f"model size   {_console.in_words(found.model_bytes)}",
        f"time         {found.seconds:.1f} s on {threads}",
    ]
    return "\n".join(lines)


def _with_options_of_train() -> None:
    """Give `plan` the options of `train` that matter to it, so that the two never differ."""
    kept = ("data", *TREE_OPTIONS, *TEXT_OPTIONS, "strict", *WORD_OPTIONS, "memory")
    of_train = inspect.signature(train, eval_str=True).parameters
    as_json = inspect.Parameter(
        "as_json",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=False,
        annotation=Annotated[bool, typer.Option("--json", help="Print one JSON object.")],
    )
    parameters = [*(of_train[name] for name in kept), as_json]
    plan.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    plan.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


_with_options_of_train()
