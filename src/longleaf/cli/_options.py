"""Options that several commands share, and how their values are parsed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from longleaf._validation.numbers import MOST_THREADS
from longleaf.text.fields import LARGEST_WEIGHT
from longleaf.training.memory import parse_memory
from longleaf.training.params import MOST_K

if TYPE_CHECKING:
    from longleaf.estimator import LabelEstimator


class Search(StrEnum):
    """How labels are searched for."""

    exact = "exact"
    beam = "beam"
    auto = "auto"


def parse_k(k: str) -> int | str:
    """Parse a number of labels, or auto."""
    if k == "auto":
        return k
    if not (k.isdecimal() and k.isascii()) or not 1 <= int(k) <= MOST_K:
        raise typer.BadParameter(f"-k must be a whole number from 1 to {MOST_K}, or auto; got {k!r}.")
    return int(k)


def parse_weights(text: list[str] | None, weights: list[str] | None) -> dict[str, float]:
    """Return the weights of fields as given; they must be fields of the text, if those are given, too."""
    given: dict[str, float] = {}
    for one in weights or ():
        name, equals, number = one.rpartition("=")
        try:
            weight = float(number) if equals and name else math.nan
        except ValueError:
            weight = math.nan
        if not 0 <= weight <= LARGEST_WEIGHT:
            raise typer.BadParameter(
                f"--field must be a field and its weight from 0 to {LARGEST_WEIGHT:g}, "
                f"as in title=1.0; got {one!r}."
            )
        if name in given:
            raise typer.BadParameter(f"--field must name each field once; got {name!r} twice.")
        given[name] = weight
    if text is not None:
        field_weights(text, given)
    return given


def field_weights(fields: list[str], given: dict[str, float]) -> dict[str, float]:
    """Return the weight of every field of the text: 1 unless it is given."""
    unknown = [name for name in given if name not in fields]
    if unknown:
        raise typer.BadParameter(
            f"--field must name fields of the text ({', '.join(fields)}); got {unknown[0]!r}, "
            "which --text could add."
        )
    weights = {name: given.get(name, 1.0) for name in fields}
    if not any(weights.values()):
        raise typer.BadParameter("--field must give some field of the text a weight above 0; got only zeros.")
    return weights


def check_text(fields: list[str] | None) -> list[str] | None:
    """Reject a field of the text that is named twice."""
    for place, name in enumerate(fields or ()):
        if fields is not None and name in fields[:place]:
            raise typer.BadParameter(f"--text must name each field once; got {name!r} twice.")
    return fields


def not_empty(path: str | None) -> str | None:
    """Reject an empty path, as from an unset shell variable."""
    if path == "":
        raise typer.BadParameter("it must name a file or folder; got an empty string.")
    return path


def check_tail(tail: float | None) -> float | None:
    """Reject a tail that is not a finite number of at least 0."""
    if tail is not None and not 0 <= tail < math.inf:
        raise typer.BadParameter(f"--tail must be a finite number of at least 0; got {tail:g}.")
    return tail


def check_beam(context: typer.Context, beam: int) -> int:
    """Reject --beam without --search beam or auto, which would silently ignore it."""
    if _is_given(context, "beam") and not _is_given(context, "search"):
        raise typer.BadParameter("--beam needs --search beam or auto; the exact search has no beam.")
    return beam


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def check_coverage(coverage: float | None) -> float | None:
    """Reject a coverage that is not above 0 and below 1."""
    if coverage is not None and not 0 < coverage < 1:
        raise typer.BadParameter(f"--coverage must be above 0 and below 1; got {coverage:g}.")
    return coverage


def check_alone(context: typer.Context, option: str, others: Mapping[str, str]) -> None:
    """Reject an option together with others, which are the names of parameters and of their options."""
    for name, other in others.items():
        if _is_given(context, name):
            raise typer.BadParameter(f"{option} and {other} cannot be given together.")


def check_memory(size: str | None) -> str | None:
    """Reject what is not a size."""
    try:
        return size if size is None else str(parse_memory(size))
    except ValueError as error:
        raise typer.BadParameter(str(error).replace("memory must", "--memory must")) from None


ModelPath = Annotated[
    str, typer.Argument(metavar="MODEL", help="Folder of a trained model.", callback=not_empty)
]
ModelOut = Annotated[
    str,
    typer.Option("-o", "--out", metavar="MODEL", help="Folder to write the model to.", callback=not_empty),
]
DataPath = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file in XMLC format, or JSONL, CSV, TSV, Parquet or Excel (.xlsx) with texts and tags; may "
        "be compressed (.gz, .xz, .bz2); - reads standard input.",
        callback=not_empty,
    ),
]
TextFields = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        metavar="FIELD",
        help="Field of the text; may be repeated: the last is the body.",
        callback=check_text,
    ),
]
FieldWeights = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        metavar="NAME=WEIGHT",
        help="Weight of a text field; may be repeated; fields that are not named weigh 1.",
    ),
]
TagsField = Annotated[str | None, typer.Option("--tags", metavar="FIELD", help="Field of the tags.")]
IdField = Annotated[
    str | None,
    typer.Option("--id", metavar="FIELD", help="Field of the id; default: id, where there is one."),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        metavar="S",
        help="Separator of tags in one string; default: ';' in CSV, TSV and Excel.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Fail on faulty rows instead of only reporting them.")]
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
        help="Suggest at most one tag per group: a tag and its group per line, or JSON.",
        callback=not_empty,
    ),
]
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, max=2**32 - 1, help="Random seed; the same seed gives the same result."),
]
Tail = Annotated[
    float | None,
    typer.Option(
        "--tail",
        metavar="T",
        callback=check_tail,
        help="Weight of rare labels: 0 ranks by probability, 1 (PS-PLT) by probability times inverse "
        "propensity; values between trade one for the other.",
    ),
]
Gain = Annotated[
    str | None,
    typer.Option(
        "--gain",
        metavar="FILE",
        help="Gain of each label, one number per line (a tag and its gain for a model of texts).",
        callback=not_empty,
    ),
]
MinProbability = Annotated[
    float | None,
    typer.Option(
        "--min-probability",
        min=0.0,
        max=1.0,
        metavar="P",
        help="Suggest no label with a smaller probability, whatever its gain.",
    ),
]
Propensity = Annotated[
    str | None,
    typer.Option(
        "--propensity",
        metavar="A,B",
        help="Constants of the propensity model; default: the model's own, normally 0.55,1.5.",
    ),
]
SearchOption = Annotated[
    Search,
    typer.Option(
        "--search",
        help="exact finds provably the best labels; beam keeps only the best nodes per tree level; auto "
        "begins with a beam and goes on until the labels are provably the best.",
        is_eager=True,
    ),
]
Beam = Annotated[
    int,
    typer.Option(
        "--beam",
        min=1,
        metavar="N",
        help="Nodes kept per level with --search beam or auto.",
        callback=check_beam,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, max=MOST_THREADS, metavar="N", help="Number of threads; default: all cores."
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Memory limit for training, such as 4G; fails with the reason if it cannot be met.",
        callback=check_memory,
    ),
]
ForceModel = Annotated[bool, typer.Option("--force", help="Replace an existing model.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Places = Annotated[str, typer.Option("-k", metavar="K,…", help="Ranks at which to evaluate.")]
Samples = Annotated[
    int, typer.Option("--samples", min=1, max=10**6, metavar="N", help="Number of bootstrap resamples.")
]


def parse_propensity(text: str | None, model: LabelEstimator) -> tuple[float, float]:
    """Parse ``A,B``; if omitted, return the model's own constants."""
    if text is None:
        return model.propensity
    try:
        a, b = (float(item) for item in text.split(","))
    except ValueError:
        a, b = math.nan, math.nan
    if not (0 <= a < math.inf and 0 < b < math.inf):
        raise typer.BadParameter(f"--propensity must be A,B with A at least 0 and B above 0; got {text!r}.")
    return a, b


def parse_places(text: str) -> tuple[int, ...]:
    """Parse ``1,3,5``; return the numbers in ascending order, each once."""
    try:
        places = sorted({int(item) for item in text.split(",")})
    except ValueError:
        places = [0]
    if not 1 <= places[0] <= places[-1] <= MOST_K:
        raise typer.BadParameter(f"-k must be whole numbers from 1 to {MOST_K}, as in 1,3,5; got {text!r}.")
    return tuple(places)
