"""What tags are worth, tag by tag: from rows, or a file of them, to a `longleaf.Utility`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from longleaf._validation import DataError, check_count, check_flag, check_number
from longleaf.io._utility_table import COLUMNS, FIELDS, TAG, Row, rows_by_tag, utility_rows
from longleaf.io.streams import Source, source_name
from longleaf.search.utility import LARGEST_UTILITY, Ints, Utility
from longleaf.text.tags import TagIndex, quoted

EVERY_OTHER = "*"
"""In place of a tag: what holds for all that is omitted."""
OTHERS = -1
"""Its number."""

UtilityRows: TypeAlias = Mapping[str, Mapping[str, Any]] | Iterable[Mapping[str, Any]]
"""Rows by tag, or rows that have a tag."""


class _Worth(NamedTuple):
    """What one tag is worth; where its row is, for error messages."""

    a: float = 1.0
    b: float = 0.0
    allowed: bool = True
    group: str | None = None
    quota: int = 1
    where: str = ""
    has_quota: bool = False


def read_utility(source: Source | UtilityRows, tags: Iterable[str] | TagIndex) -> Utility:
    r"""Read what tags are worth from a file, or from rows.

    Parameters
    ----------
    source : str, path-like or binary file object; or mapping, or iterable of mappings
        Rows of ``tag``, ``a``, ``b``, ``allowed``, ``group`` and ``quota``, all but the tag optional: a tag
        is worth ``a * probability + b`` if it is ``allowed``, and of a ``group`` a text gets at most
        ``quota`` tags, 1 unless some row of the group says otherwise. The row of the tag ``*`` says what
        holds for all that is omitted, of other rows and of tags without a row; without it, that is ``a`` 1
        and ``b`` 0. In memory, rows may also be a mapping by tag, or a data frame. A file is CSV or TSV,
        whose first line names the columns; or one JSON object per line; or a JSON array of them, or a JSON
        object of them by tag. It may be compressed.
    tags : iterable of str
        The tags of the model in order, such as the ``classes_`` of a `longleaf.Tagger`; for a model of
        features, ``map(str, range(model.n_labels_))``.

    Returns
    -------
    Utility
        For ``suggest`` or ``top_k``. Used again, it is faster than rows: its bounds are made once.

    Raises
    ------
    DataError
        If a file cannot be read, or has anything wrong; the message names the line.

    Examples
    --------
    >>> import io
    >>> import longleaf as ll
    >>> file = io.BytesIO(b"tag,a,b\n*,1,-0.1\noil,5,-0.5\n")
    >>> ll.read_utility(file, ["fish", "oil"]).a
    array([1., 5.], dtype=float32)
    >>> ll.read_utility({"fish": {"allowed": False}}, ["fish", "oil"]).mask
    array([False,  True])
    """
    index = tags if isinstance(tags, TagIndex) else TagIndex(tags)
    if not (isinstance(source, str | os.PathLike) or hasattr(source, "read")):
        return utility_of(source, index)
    file = cast(Source, source)
    try:
        rows = list(utility_rows(file))
        if not rows:
            raise DataError(f"{source_name(file)} must name at least one tag; got none.")
        return _utility(rows, index)
    except (TypeError, ValueError) as error:
        raise DataError(str(error)) from None


def utility_of(rows: UtilityRows, tags: TagIndex) -> Utility:
    """Return what rows in memory say; tags may be called by their readable names."""
    return _utility(_rows(rows), tags)


def _rows(source: Any) -> Iterator[Row]:
    if isinstance(source, Mapping):
        return rows_by_tag(source, "utility")
    if hasattr(source, "to_dict") and hasattr(source, "columns"):  # a data frame
        source = source.to_dict("records")
    if not isinstance(source, Iterable) or isinstance(source, str | bytes):
        raise TypeError(f"utility must be a longleaf.Utility, or rows by tag; got {type(source).__name__}.")
    return ((f"utility[{number}]", row) for number, row in enumerate(source))


def _utility(rows: Iterable[Row], tags: TagIndex) -> Utility:
    """Check rows, and return what they say."""
    found: dict[int, Row] = {}
    for where, row in rows:
        word = _tag(row, where)
        number = OTHERS if word == EVERY_OTHER else tags.number(word, where)
        if number in found:
            raise ValueError(f"{where} must name a tag that has no row yet; got {quoted(word)} again.")
        found[number] = where, row
    others = _worth(*found.pop(OTHERS, ("", {})), _Worth())
    own = {number: _worth(where, row, others) for number, (where, row) in found.items()}
    a, b = np.full(len(tags), others.a), np.full(len(tags), others.b)
    mask = np.full(len(tags), others.allowed)
    for number, one in own.items():
        a[number], b[number], mask[number] = one.a, one.b, one.allowed
    groups, quota = _quotas(others, own, len(tags))
    return Utility(a, b, None if mask.all() else mask, groups=groups, quota=quota)


def _tag(row: Any, where: str) -> str:
    """Return the tag of a row, and check that there is nothing unknown in it."""
    if not isinstance(row, Mapping):
        raise ValueError(f"{where} must have {COLUMNS} by name; got {row!r:.80}.")
    unknown = [name for name in row if name not in (TAG, *FIELDS)]
    if unknown:
        raise ValueError(f"{where} must have fields among {COLUMNS}; got {unknown[0]!r:.80}.")
    tag = row.get(TAG)
    if isinstance(tag, int) and not isinstance(tag, bool):  # the number of a label
        return str(tag)
    if not isinstance(tag, str) or not tag.strip():
        raise ValueError(f"{where} must name a tag; got {tag!r:.80}.")
    return tag


def _worth(where: str, row: Mapping[str, Any], others: _Worth) -> _Worth:
    """Check what a row says, and add what it omits."""
    given = {name: value for name, value in row.items() if name != TAG and value is not None}
    tag = quoted(str(row.get(TAG)))
    for name, value in given.items():
        what = f"{where}: {name} of {tag}"
        if name == "allowed":
            given[name] = check_flag(value, what)
        elif name == "quota":
            given[name] = check_count(value, what, low=0)
        elif name == "group":
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise ValueError(f"{what} must be a string; got {value!r:.80}.")
            given[name] = str(value) or None
        else:
            given[name] = check_number(value, what, low=-LARGEST_UTILITY, high=LARGEST_UTILITY)
    return others._replace(**given, where=where, has_quota="quota" in given)


def _quotas(others: _Worth, own: Mapping[int, _Worth], n_tags: int) -> tuple[Ints | None, Ints | None]:
    """Return the group of each tag and the quota of each group; None if there are no groups."""
    numbers: dict[str | None, int] = {None: -1}
    groups = np.full(n_tags, numbers.setdefault(others.group, len(numbers) - 1), np.int32)
    says: dict[str, _Worth] = {}
    for number, one in own.items():
        groups[number] = numbers.setdefault(one.group, len(numbers) - 1)
        if not one.has_quota:
            continue
        if one.group is None:
            raise ValueError(f"{one.where}: a quota needs a group; got {one.quota} without one.")
        first = says.setdefault(one.group, one)
        if first.quota != one.quota:
            raise ValueError(
                f"{one.where}: a group must have one quota; {quoted(one.group)} has {first.quota} "
                f"and {one.quota}."
            )
    del numbers[None]
    if not numbers:
        return None, None
    quota = [says.get(str(group), others).quota for group in numbers]
    return groups, np.array(quota, np.int32)
