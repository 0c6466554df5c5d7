"""Requests, validated before any work is done."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from longleaf._validation import check_count, check_number, check_pair
from longleaf.search.auto_k import DEFAULT_MOST
from longleaf.server.engine import UNPROCESSABLE, Embeddings, Engine
from longleaf.server.settings import Limits, Refusal
from longleaf.suggest import AUTO, Query, check_k
from longleaf.text.fields import LANGUAGE, NO_TEXT, field_texts

MALFORMED = 400
ROWS = ("texts", "vectors")
LIMITS = ("epsilon", "max_nodes", "deadline_ms")
SETTINGS = ("max_k", "search", "beam", *LIMITS, "threshold", "min_probability")
"""Fields that `Suggester.query` takes, and checks, as they are."""
OPTIONS = ("k", "tail", "gain", "utility", "propensity", "only", "never", "groups", *SETTINGS)
FIELDS = (*ROWS, *OPTIONS, "explain")
LARGEST_TAIL = 10
MOST_UTILITY_ROWS = 10_000

JsonObject = dict[str, Any]
ReadText: TypeAlias = str | dict[str, Any]
"""A text as the model reads it: plain, or the text of each field that the model reads, and an embedding if it
reads one."""


def read_json(body: bytes) -> JsonObject:
    """Parse a request's body, one JSON object."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    try:
        value = json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Refusal(MALFORMED, f"The body must be JSON: {error}.") from None
    if not isinstance(value, dict):
        raise Refusal(MALFORMED, f"The body must be a JSON object; got {_kind(value)}.")
    return value


@dataclass(frozen=True)
class SuggestRequest:
    """Rows and how to search them.

    Attributes
    ----------
    texts : list of str or dict
        Plain texts, or records with the text of each field that the model reads.
    key : str
        Requests with the same key may be searched together.
    embeddings : float32 array [rows, embedding], optional
        Of the texts, if the model was trained with an encoder; added before the search.
    """

    engine: Engine
    texts: list[ReadText]
    X: Any
    query: Query
    explain: bool
    key: str
    embeddings: Embeddings | None = None

    @property
    def n_rows(self) -> int:
        """The number of texts or vectors."""
        return len(self.texts) if self.X is None else int(self.X.shape[0])

    @property
    def must_be_embedded(self) -> bool:
        """Whether its texts must be embedded before the search."""
        return self.X is None and self.engine.embeds

    @property
    def k(self) -> int | str:
        """The number of suggestions per row, or ``"auto"``."""
        return AUTO if self.query.auto else self.query.k

    @classmethod
    def parse(cls, body: JsonObject, engine: Engine, limits: Limits) -> SuggestRequest:
        """Check the fields of ``POST /v1/suggest``, which mean the same as in `longleaf.Tagger.suggest`."""
        check_fields(body, FIELDS)
        body = {name: value for name, value in body.items() if value is not None}
        if body.get("k") == AUTO:
            body.setdefault("max_k", min(DEFAULT_MOST, limits.k))
        texts, X = _rows(body, engine, limits)
        explain = _typed(body.get("explain", False), "explain", bool)
        if explain and X is not None:
            raise Refusal(UNPROCESSABLE, "explain needs texts, because vectors have no words.")
        if explain:
            check_explained(texts, limits)
        plain = {name: body[name] for name in OPTIONS if name in body}
        described = json.dumps([engine.version, X is None, {"k": 5} | plain], sort_keys=True)
        key = hashlib.sha256(described.encode()).hexdigest()
        with unprocessable():
            k = body.get("k", 5)
            if k == AUTO:
                check_count(body["max_k"], "max_k", high=limits.k)
            else:
                check_k(k, limits.k)
            query = engine.query(key, lambda: engine.suggester.query(k, **_query_arguments(body)))
        return cls(engine, texts, X, query, explain, key)


def _rows(body: JsonObject, engine: Engine, limits: Limits) -> tuple[list[ReadText], Any]:
    """Return the texts, or the matrix of the vectors."""
    given = [name for name in ROWS if name in body]
    if len(given) != 1:
        raise Refusal(
            UNPROCESSABLE, f"Either texts or vectors must be given; got {' and '.join(given) or 'neither'}."
        )
    rows = _typed(body[given[0]], given[0], list)
    if not 1 <= len(rows) <= limits.texts:
        raise Refusal(
            UNPROCESSABLE, f"{given[0]} must be 1 to {limits.texts} in one request; got {len(rows)}."
        )
    if given[0] == "texts":
        return [read_text(text, f"texts[{place}]", engine) for place, text in enumerate(rows)], None
    with unprocessable():
        return [], engine.vectors([_vector(row) for row in rows])


def read_text(value: Any, name: str, engine: Engine) -> ReadText:
    """Return a text, or the text of each field of a record that the model reads, in the model's order.

    A model of plain texts reads all fields of a record. Beside them, a record keeps its language.
    """
    engine.needs_texts()
    fields = engine.suggester.fields
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise Refusal(UNPROCESSABLE, f"{name} must be a string or an object of fields; got {_kind(value)}.")
    read = fields or [field for field in value if field not in NO_TEXT]
    if not any(field in value for field in read):
        expected = f"one of the fields {', '.join(fields)}" if fields else "at least one field of text"
        raise Refusal(UNPROCESSABLE, f"{name} must have {expected}; got {_listed(value)}.")
    for field in read:
        _check_field(value.get(field), f"{name}[{field!r}]")
    language = value.get(LANGUAGE)
    kept = {LANGUAGE: language} if isinstance(language, str) else {}
    kept |= _embedding(value, name, engine)
    return kept | dict(zip(read, field_texts(value, read, 0), strict=True))


def _embedding(value: JsonObject, name: str, engine: Engine) -> JsonObject:
    """Return the field of a record that holds its embedding, if the model reads one."""
    column = engine.column
    if column is None or column.field not in value:
        return {}
    try:
        column.value(value, 0)
    except ValueError as error:
        raise Refusal(UNPROCESSABLE, str(error).replace("texts[0]", name, 1)) from None
    return {column.field: value[column.field]}


def _check_field(value: Any, name: str) -> None:
    if value is None or isinstance(value, str):
        return
    if not isinstance(value, list):
        raise Refusal(
            UNPROCESSABLE, f"{name} must be a string, a list of strings or null; got {_kind(value)}."
        )
    for item in value:
        _typed(item, f"Each item of {name}", str)


def n_characters(text: ReadText) -> int:
    """Return the size of a text, or of all fields of a record."""
    return len(text) if isinstance(text, str) else sum(map(len, text.values()))


def _vector(row: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Read ``{"indices": […], "values": […]}``."""
    row = _typed(row, "Each vector", dict)
    if set(row) != {"indices", "values"}:
        raise Refusal(UNPROCESSABLE, f"Each vector must have indices and values; got {_listed(row)}.")
    indices, values = _numbers(row["indices"], "indices", "iu"), _numbers(row["values"], "values", "iuf")
    if len(indices) != len(values):
        raise ValueError(
            f"indices and values must have the same length; got {len(indices)} and {len(values)}."
        )
    return indices, values


def _numbers(value: Any, name: str, kinds: str) -> npt.NDArray[Any]:
    array = np.asarray(_typed(value, name, list))
    of_numbers = array.ndim == 1 and (not array.size or array.dtype.kind in kinds)
    if not of_numbers or bool in set(map(type, value)):  # NumPy reads true as 1
        expected = "whole numbers" if kinds == "iu" else "numbers"
        raise ValueError(f"{name} must be a list of {expected}; got {json.dumps(value)[:40]}.")
    return array


def _query_arguments(body: JsonObject) -> dict[str, Any]:
    """Return the arguments of `Suggester.query`, with checked types."""
    arguments: dict[str, Any] = {name: body[name] for name in SETTINGS if name in body}
    if "tail" in body:
        arguments["tail"] = check_number(body["tail"], "tail", low=0, high=LARGEST_TAIL)
    if "utility" in body:
        arguments["utility"] = _typed(body["utility"], "utility", list)
        if len(body["utility"]) > MOST_UTILITY_ROWS:
            raise Refusal(
                UNPROCESSABLE,
                f"utility must have at most {MOST_UTILITY_ROWS} rows; got {len(body['utility'])}.",
            )
    if "propensity" in body:
        arguments["propensity"] = check_pair(body["propensity"], "propensity", "A, B")
    arguments |= {name: _by_tag(body[name], name) for name in ("gain", "groups") if name in body}
    return arguments | {name: _tags(body[name], name) for name in ("only", "never") if name in body}


def _by_tag(value: Any, name: str) -> dict[str, Any]:
    value = _typed(value, name, dict)
    for inner in value.values():
        if isinstance(inner, list | dict):
            raise Refusal(UNPROCESSABLE, f"{name} must hold plain values; got {_kind(inner)}.")
    return dict(value)


def _tags(value: Any, name: str) -> list[str]:
    return [_typed(tag, f"Each tag of {name}", str) for tag in _typed(value, name, list)]


def check_explained(texts: Sequence[ReadText], limits: Limits) -> None:
    """Reject texts above the limit: explanations look at each character in Python, which is slow."""
    size = sum(map(n_characters, texts))
    if size > limits.explained:
        raise Refusal(
            UNPROCESSABLE,
            f"Texts to explain must have at most {limits.explained} characters in one request; got {size}.",
        )


def check_fields(body: JsonObject, known: tuple[str, ...]) -> None:
    """Reject unknown fields, which are probably typos."""
    unknown = [name for name in body if name not in known]
    if unknown:
        raise Refusal(UNPROCESSABLE, f"Fields must be among {', '.join(known)}; got {unknown[0]!r}.")


def required(body: JsonObject, name: str, kind: type) -> Any:
    """Return a required field."""
    return _typed(_given(body, name), name, kind)


def required_text(body: JsonObject, engine: Engine) -> ReadText:
    """Return the required field ``text``; see `read_text`."""
    return read_text(_given(body, "text"), "text", engine)


def _given(body: JsonObject, name: str) -> Any:
    if name not in body:
        raise Refusal(UNPROCESSABLE, f"{name} must be given.")
    return body[name]


class unprocessable:  # noqa: N801 - used as a statement
    """Turn errors of the library into a `Refusal` with the same sentence."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OverflowError):
            raise Refusal(UNPROCESSABLE, "Numbers must be within the range of a 64-bit float.") from None
        if isinstance(error, ValueError | TypeError):
            raise Refusal(UNPROCESSABLE, str(error)) from None


def _typed(value: Any, name: str, kind: type) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Refusal(UNPROCESSABLE, f"{name} must be {_KINDS[kind]}; got {_kind(value)}.")
    return value


_KINDS = {str: "a string", list: "a list", dict: "an object", bool: "true or false", int: "a whole number"}


def _kind(value: Any) -> str:
    return "null" if value is None else _KINDS.get(type(value), "a number")


def _listed(row: JsonObject) -> str:
    return ", ".join(sorted(row)[:5]) or "none"
