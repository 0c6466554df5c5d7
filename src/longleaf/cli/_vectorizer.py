"""The parameters of `TextVectorizer` as options."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any

import typer

from longleaf.text.checks import check_parameters
from longleaf.text.vectorizer import TextVectorizer

PANEL = "Text features"


class Analyzer(StrEnum):
    """The kind of terms."""

    word = "word"
    char = "char"
    char_wb = "char_wb"


OPTIONS = {
    "analyzer": "--analyzer",
    "ngram_range": "--ngrams",
    "char_ngram_range": "--chars",
    "stem": "--stem",
    "min_df": "--min-df",
    "max_df": "--max-df",
    "max_features": "--max-features",
    "hashing": "--hash",
    "lowercase": "--keep-case",
}


def _option(parameter: str, help: str, **details: Any) -> Any:
    return typer.Option(OPTIONS[parameter], help=help, rich_help_panel=PANEL, **details)


def word_settings(
    analyzer: Annotated[
        Analyzer | None,
        _option("analyzer", "Terms of words (default), of characters, or of characters within words."),
    ] = None,
    ngrams: Annotated[
        str | None,
        _option(
            "ngram_range",
            "Shortest and longest n-grams: 1,2 is words and pairs of words; default: 1,1.",
            metavar="MIN,MAX",
        ),
    ] = None,
    chars: Annotated[
        str | None,
        _option(
            "char_ngram_range",
            "Character n-grams of these lengths beside words; default: 5,5; none for words only.",
            metavar="MIN,MAX|none",
        ),
    ] = None,
    stem: Annotated[
        str | None,
        _option(
            "stem",
            "Stems beside words, in these languages; a field lang says which of them a record is in.",
            metavar="LANGUAGE,...",
        ),
    ] = None,
    min_df: Annotated[
        str | None,
        _option(
            "min_df", "Ignore terms in fewer texts: a whole number, or a share such as 0.001.", metavar="N"
        ),
    ] = None,
    max_df: Annotated[
        str | None,
        _option("max_df", "Ignore terms in more texts: a whole number, or a share such as 0.5.", metavar="N"),
    ] = None,
    max_features: Annotated[
        int | None, _option("max_features", "Keep only the most frequent terms.", min=1, metavar="N")
    ] = None,
    hashing: Annotated[
        int | None,
        _option(
            "hashing",
            "Hash terms into N columns: bounds memory, but explanations can only guess words.",
            min=1,
            metavar="N",
        ),
    ] = None,
    keep_case: Annotated[bool, _option("lowercase", "Distinguish upper and lower case.")] = False,
) -> dict[str, Any]:
    """Return the given options as parameters of `TextVectorizer`; reject invalid combinations."""
    given = {
        "analyzer": None if analyzer is None else analyzer.value,
        "ngram_range": None if ngrams is None else _range("--ngrams", ngrams),
        "char_ngram_range": None if chars in (None, "none") else _range("--chars", chars),
        "min_df": None if min_df is None else _frequency("--min-df", min_df),
        "max_df": None if max_df is None else _frequency("--max-df", max_df),
        "stem": None if stem is None else [one.strip() for one in stem.split(",")],
        "max_features": max_features,
        "hashing": hashing,
        "lowercase": False if keep_case else None,
    }
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if chars == "none":
        settings["char_ngram_range"] = None
    try:
        check_parameters(TextVectorizer(**settings).get_params())
    except ValueError as error:
        names = re.compile("|".join(rf"\b{name}\b" for name in OPTIONS))
        message = names.sub(lambda match: OPTIONS[match[0]], str(error))
        message = message.replace("be None or", "be").replace("be None", "be omitted")
        raise typer.BadParameter(message) from None
    return settings


def named_options(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings by the names of their options, without leading dashes."""
    settings = {name: value for name, value in settings.items() if name in OPTIONS}
    return {OPTIONS[name].removeprefix("--"): value for name, value in settings.items()}


def _range(option: str, text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,4})(?:,(\d{1,4}))?", text)
    if match is None:
        raise typer.BadParameter(f"{option} must be two whole numbers, as in 1,2; got {text!r}.")
    return int(match[1]), int(match[2] or match[1])


def _frequency(option: str, text: str) -> float:
    """Parse a number of texts, or a share of them if it has a decimal point."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise typer.BadParameter(f"{option} must be a number of texts or a share; got {text!r}.") from None
