"""``longleaf plan``."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import typer

from longleaf.cli import _console, _options
from longleaf.cli._estimator import Kind, KindOption, PresetOption, make_estimator, tree_settings
from longleaf.cli._groups import takes
from longleaf.cli._tables import given, given_fields, open_table, report
from longleaf.cli._training import is_table, load_labelled
from longleaf.cli._vectorizer import named_options, word_settings
from longleaf.planning import Plan
from longleaf.planning import plan as plan_training
from longleaf.text.tags import TagCollector
from longleaf.text.vectorizer import TextVectorizer
from longleaf.training.sampling import Clock


@takes(settings=tree_settings, words=word_settings)
def plan(
    data: _options.DataPath,
    preset: PresetOption = None,
    *,
    settings: dict[str, Any],
    seed: _options.Seed = 1,
    threads: _options.Threads = None,
    model: KindOption = Kind.plt,
    text: _options.TextFields = None,
    tags: _options.TagsField = None,
    id: _options.IdField = None,
    separator: _options.Separator = None,
    strict: _options.Strict = False,
    words: dict[str, Any],
    memory: _options.MemoryLimit = None,
    as_json: _options.Json = False,
) -> None:
    """Estimate what training on DATA takes: nodes, rows per level, memory, model size and time."""
    clock = Clock()
    estimator = make_estimator(model, preset, settings, seed, threads)
    fields = given_fields(text=text, tags=tags, separator=separator, id=id)
    if is_table(data, fields | given(strict=strict) | named_options(words)):
        X, Y = _read_texts(data, fields, strict, TextVectorizer(**words, n_jobs=estimator.n_jobs))
    else:
        rows = load_labelled(data)
        X, Y = rows.X, rows.Y
    reading, before = clock.seconds(), _console.peak_memory()
    with _console.waiting("planning"):
        found = plan_training(X, Y, estimator, memory=memory)
    found = replace(found, seconds=found.seconds + reading, memory_bytes=max(found.memory_bytes, before))
    if as_json:
        _console.print_json(asdict(found))
    else:
        typer.echo(_in_words(found))


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
    on_disk = "weights and working copies" if found.execution.scratch else "weights"
    lines += [
        "",
        f"nodes        {found.nodes:,} in {found.trees} tree{'s' if found.trees > 1 else ''}",
        f"peak memory  {_console.in_words(found.memory_bytes)}"
        + (f", with {on_disk} on disk" if found.execution.spill else ""),
        f"model size   {_console.in_words(found.model_bytes)}",
        f"time         {found.seconds:.1f} s on {threads}",
    ]
    return "\n".join(lines)
