"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from longleaf._validation.numbers import MOST_THREADS
from longleaf.training.memory import parse_memory

if TYPE_CHECKING:
    from longleaf.estimator import LabelEstimator


class Search(StrEnum):
    """How labels are looked for."""

    exact = "exact"
    beam = "beam"


def not_empty(path: str | None) -> str | None:
    """Refuse an empty path, as from a shell variable that is not set."""
    if path == "":
        raise typer.BadParameter("it must name a file or folder; got an empty string.")
    return path


def check_tail(tail: float | None) -> float | None:
    """Refuse a tail dial that is not a finite number of at least 0."""
    if tail is not None and not 0 <= tail < math.inf:
        raise typer.BadParameter(f"--tail must be a finite number of at least 0; got {tail:g}.")
    return tail


def check_beam(context: typer.Context, beam: int) -> int:
    """Refuse a beam where nobody said how to search: it would silently not be used."""
    if _is_given(context, "beam") and not _is_given(context, "search"):
        raise typer.BadParameter("--beam needs --search beam; the exact search has no beam.")
    return beam


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def check_memory(size: str | None) -> str | None:
    """Refuse what is not a size."""
    try:
        return size if size is None else str(parse_memory(size))
    except ValueError as error:
        raise typer.BadParameter(str(error).replace("memory must", "--memory must")) from None


ModelPath = Annotated[
    str, typer.Argument(metavar="MODEL", help="The folder of a trained model.", callback=not_empty)
]
ModelOut = Annotated[
    str,
    typer.Option(
        "-o", "--out", metavar="MODEL", help="The folder to write the model to.", callback=not_empty
    ),
]
DataPath = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file in XMLC format, or JSONL, CSV, TSV or Parquet with texts and tags; also .gz, .xz or "
        ".bz2; - reads standard input.",
        callback=not_empty,
    ),
]
TextFields = Annotated[
    list[str] | None,
    typer.Option("--text", metavar="FIELD", help="A field of the text; several are joined in this order."),
]
TagsField = Annotated[str | None, typer.Option("--tags", metavar="FIELD", help="The field of the tags.")]
Separator = Annotated[
    str | None,
    typer.Option("--separator", metavar="S", help="What separates tags in one string; ; in CSV and TSV."),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse a table with a faulty row; else such rows are reported.")
]
Names = Annotated[
    str | None,
    typer.Option(
        "--names",
        metavar="FILE",
        help="Readable names: a tag and its name per line, or JSON.",
        callback=not_empty,
    ),
]
Only = Annotated[
    str | None,
    typer.Option("--only", metavar="FILE", help="Suggest only these tags: one per line.", callback=not_empty),
]
Never = Annotated[
    str | None,
    typer.Option(
        "--never", metavar="FILE", help="Never suggest these tags: one per line.", callback=not_empty
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="FILE",
        help="Suggest at most one tag of a group: a tag and its group per line, or JSON.",
        callback=not_empty,
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=2**32 - 1, help="The same seed gives the same result.")
]
Tail = Annotated[
    float | None,
    typer.Option(
        "--tail",
        metavar="T",
        callback=check_tail,
        help="The tail dial: 0 is plain precision, 1 is PS-PLT, which values rare labels by their inverse "
        "propensity; anything between is a trade.",
    ),
]
Propensity = Annotated[
    str | None,
    typer.Option(
        "--propensity",
        metavar="A,B",
        help="Constants of the propensity model. Left out, the model's own: 0.55,1.5.",
    ),
]
SearchOption = Annotated[
    Search,
    typer.Option(
        "--search",
        help="Provably the best labels, or only the best nodes of each tree level.",
        is_eager=True,
    ),
]
Beam = Annotated[
    int,
    typer.Option(
        "--beam", min=1, metavar="N", help="Nodes kept per level with --search beam.", callback=check_beam
    ),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, max=MOST_THREADS, metavar="N", help="Threads; left out, all cores."),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="The most memory to take, such as 4G: training fits, or says why it cannot.",
        callback=check_memory,
    ),
]
ForceModel = Annotated[bool, typer.Option("--force", help="Replace the model that is there.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Places = Annotated[str, typer.Option("-k", metavar="K,…", help="How many labels to judge.")]
Samples = Annotated[
    int, typer.Option("--samples", min=1, max=10**6, metavar="N", help="Resamples of the bootstrap.")
]


def parse_propensity(text: str | None, model: LabelEstimator) -> tuple[float, float]:
    """Read ``A,B``; without it, the model's own constants."""
    if text is None:
        return model.propensity
    try:
        a, b = (float(part) for part in text.split(","))
    except ValueError:
        a, b = math.nan, math.nan
    if not (0 <= a < math.inf and 0 < b < math.inf):
        raise typer.BadParameter(f"--propensity must be A,B with A at least 0 and B above 0; got {text!r}.")
    return a, b


def parse_places(text: str) -> tuple[int, ...]:
    """Read ``1,3,5``, in rising order and each once."""
    try:
        places = sorted({int(part) for part in text.split(",")})
    except ValueError:
        places = [0]
    if places[0] < 1:
        raise typer.BadParameter(f"-k must be whole numbers of at least 1, as in 1,3,5; got {text!r}.")
    return tuple(places)
