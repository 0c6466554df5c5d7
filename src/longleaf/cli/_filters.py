"""Which tags may be suggested: files of ``--only``, ``--never`` and ``--groups``."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf._base.estimator import LabelEstimator
from longleaf._tagging.suggest import best_labels
from longleaf._tagging.tags import filtered_gain, group_numbers
from longleaf._validation import DataError
from longleaf.cli import _console
from longleaf.cli._data import open_source
from longleaf.cli._tables import label_model
from longleaf.io._lines import read_lines
from longleaf.io.names import read_names
from longleaf.io.streams import read_chunks
from longleaf.search import TopK, resolve_gain
from longleaf.tagger import Tagger


@dataclass(frozen=True)
class Filters:
    """Tags that alone may be suggested, tags that must not be, and groups of which at most one may be."""

    only: list[str] | None = None
    never: list[str] | None = None
    groups: dict[str, str] | None = None

    @classmethod
    def read(
        cls,
        model: LabelEstimator | Tagger,
        *,
        only: str | None,
        never: str | None,
        groups: str | None,
        strict: bool = False,
    ) -> Filters:
        """Read the files that were given; tags that the model does not know are left out, and that is said.

        Parameters
        ----------
        model : PLT, BR or Tagger
            A model of features knows its labels by number.
        only, never, groups : str, optional
            Paths; the first two hold a tag per line, the third a tag and its group. A tag may be given by
            its readable name.
        strict : bool
            Whether an unknown tag is an error.
        """
        tags = tags_by_word(model)
        filters = cls(
            None if only is None else _known(only, _read_tags(only), tags, strict),
            None if never is None else _known(never, _read_tags(never), tags, strict),
            None if groups is None else _known_groups(groups, tags, strict),
        )
        if filters.only == []:
            raise DataError(f"{only} must name a tag that occurs in training; it names none.")
        return filters

    def dial(self, model: LabelEstimator | Tagger, dial: dict[str, Any]) -> dict[str, Any]:
        """Give the arguments of ``top_k`` with what must not be suggested worth nothing."""
        if self.only is None and self.never is None:
            return dial
        labels = label_model(model)
        options = {name: dial[name] for name in ("tail", "gain", "propensity")}
        gain = resolve_gain(labels.label_counts_, labels.n_rows_, **options)
        return dial | {"tail": None, "gain": filtered_gain(gain, tag_index(model), self.only, self.never)}

    def group_of_label(self, model: LabelEstimator | Tagger) -> npt.NDArray[np.int64] | None:
        """Give each label the number of its group, or None without groups."""
        return None if self.groups is None else group_numbers(self.groups, tag_index(model))


def tag_index(model: LabelEstimator | Tagger) -> dict[str, int]:
    """Give the number of each tag; labels of a model of features are their numbers."""
    tags = model.classes_ if isinstance(model, Tagger) else map(str, range(model.n_labels_))
    return {tag: number for number, tag in enumerate(tags)}


def tags_by_word(model: LabelEstimator | Tagger) -> dict[str, str]:
    """Give the tag that a word means: a tag is itself, a readable name is the one tag that has it."""
    index = tag_index(model)
    names = (model.names if isinstance(model, Tagger) else None) or {}
    named = {tag: name for tag, name in names.items() if tag in index}
    bearers = Counter(named.values())
    own = {name: tag for tag, name in named.items() if bearers[name] == 1}
    return own | {tag: tag for tag in index}


def filtered_top_k(
    model: LabelEstimator, X: Any, k: int, group: npt.NDArray[np.int64] | None, dial: dict[str, Any]
) -> TopK:
    """Find the best labels, at most one of each group."""
    if group is None:
        return model.top_k(X, k, **dial)
    found = best_labels(model, X, k, group, {name: v for name, v in dial.items() if name != "progress"})
    labels, scores = np.full((len(found), k), -1, np.int32), np.zeros((len(found), k), np.float32)
    for row, (own, worth) in enumerate(found):
        labels[row, : len(own)], scores[row, : len(own)] = own, worth
    return TopK(labels, scores, np.zeros(len(found), np.int64))


def _read_tags(path: str) -> dict[str, int]:
    """Read a tag per line; give the line of each."""
    with closing(read_chunks(open_source(path))) as chunks:
        lines = [(line.number, (line.text or "").strip()) for line in read_lines(chunks)]
    tags: dict[str, int] = {}
    for number, tag in lines:
        if tag:
            tags.setdefault(tag, number)
    return tags


def _known(path: str, lines: dict[str, int], tags: dict[str, str], strict: bool) -> list[str]:
    """Keep the tags that the model knows, each once; say how many it does not."""
    unknown = [word for word in lines if word not in tags]
    if unknown:
        where = f"{unknown[0]!r} in line {lines[unknown[0]]}" if lines[unknown[0]] else repr(unknown[0])
        if strict:
            raise DataError(f"{path} must name tags that occur in training; {where} does not.")
        _console.note(
            f"{path}: {len(unknown)} of {len(lines)} tags do not occur in training; the first is {where}"
        )
    return list(dict.fromkeys(tags[word] for word in lines if word in tags))


def _known_groups(path: str, tags: dict[str, str], strict: bool) -> dict[str, str]:
    groups = read_names(open_source(path), "its group")
    known = _known(path, dict.fromkeys(groups, 0), tags, strict)
    group = {tags[word]: groups[word] for word in groups if word in tags}
    return {tag: group[tag] for tag in known}
