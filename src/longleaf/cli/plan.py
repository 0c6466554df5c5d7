"""``longleaf plan``."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import typer

from longleaf.cli import _console, _options
from longleaf.cli._estimator import Kind, KindOption, PresetOption, make_estimator, tree_settings
from longleaf.cli._groups import takes
from longleaf.cli._tables import open_table, report
from longleaf.cli._texts import TextOptions, text_options
from longleaf.cli._training import is_table, load_labelled
from longleaf.planning import Plan
from longleaf.planning import plan as plan_training
from longleaf.text.tags import TagCollector
from longleaf.training.sampling import Clock


@takes(settings=tree_settings, texts=text_options)
def plan(
    data: _options.DataPath,
    preset: PresetOption = None,
    *,
    settings: dict[str, Any],
    seed: _options.Seed = 1,
    threads: _options.Threads = None,
    model: KindOption = Kind.plt,
    texts: TextOptions,
    memory: _options.MemoryLimit = None,
    as_json: _options.Json = False,
) -> None:
    """Estimate what training on DATA takes: nodes, rows per level, memory, model size and time."""
    clock = Clock()
    estimator = make_estimator(model, preset, settings, seed, threads)
    if is_table(data, texts.given):
        X, Y = _read_texts(data, texts, estimator.n_jobs)
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


def _read_texts(path: str, texts: TextOptions, n_jobs: int | None) -> tuple[Any, Any]:
    collector = TagCollector()
    with open_table(path, texts.fields, strict=texts.strict) as reader:
        X = texts.vectorizer(n_jobs, reader).fit_transform(collector.texts(reader))
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
