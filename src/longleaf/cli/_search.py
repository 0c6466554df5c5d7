"""How labels are searched for, and when a search ends early: ``--search`` and its limits."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from longleaf.cli import _options
from longleaf.search.top_k import MOST_EPSILON


def search_settings(
    search: _options.SearchOption = _options.Search.exact,
    beam: _options.Beam = 10,
    epsilon: Annotated[
        float,
        typer.Option(
            "--epsilon",
            min=0.0,
            max=MOST_EPSILON,
            metavar="E",
            help="End a row's search when no missing label can score more than the last one / (1 - E).",
        ),
    ] = 0.0,
    max_nodes: Annotated[
        int | None,
        typer.Option(
            "--max-nodes",
            min=1,
            metavar="N",
            help="End a row's search when N node classifiers have been evaluated.",
        ),
    ] = None,
    deadline_ms: Annotated[
        float | None,
        typer.Option(
            "--deadline-ms",
            min=0.001,
            metavar="MS",
            help="End a search after so many milliseconds; some thousand rows are searched at once.",
        ),
    ] = None,
) -> dict[str, Any]:
    """Return the arguments of a query that say how to search."""
    return {
        "search": search.value,
        "beam": beam,
        "epsilon": epsilon,
        "max_nodes": max_nodes,
        "deadline_ms": deadline_ms,
    }
