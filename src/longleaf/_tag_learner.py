"""A tagger that goes on learning, with tags by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from longleaf._learner import LabelLearner
from longleaf.io.tables import Record
from longleaf.text.tags import Objects, TagCollector, TagIndex, as_objects

Progress = Callable[[float], None] | None


class TagLearner:
    """What a tagger can be taught after `fit`.

    The vectorizer stays as it was fitted: words that it does not know are not learned, and document
    frequencies do not move. ``TextVectorizer(hashing=2**18, min_df=0.0)`` knows every word. A tag's number,
    its place in ``classes_``, never changes; new tags come last.
    """

    names: Mapping[str, str] | None
    estimator_: Any
    vectorizer_: Any
    classes_: Objects

    if TYPE_CHECKING:

        def fit(self, texts: Any, tags: Any, sample_weight: Any = None, *, progress: Any = None) -> Self: ...
        def fit_records(self, records: Any, *, progress: Any = None) -> Self: ...
        def _matrix(self, texts: Iterable[str]) -> Any: ...

    def partial_fit(
        self,
        texts: Iterable[str],
        tags: Iterable[Iterable[str]],
        sample_weight: npt.ArrayLike | None = None,
        *,
        progress: Progress = None,
    ) -> Self:
        """Learn from new texts without the old ones, new tags included; the first call is `fit`.

        Parameters
        ----------
        texts, tags, sample_weight, progress
            As in `fit`; `longleaf.PLT.partial_fit` says what happens.
        """
        if not hasattr(self, "estimator_"):
            return self.fit(texts, tags, sample_weight, progress=progress)
        return self._learn(texts, TagCollector.of(tags, self.classes_), sample_weight, progress)

    def partial_fit_records(self, records: Iterable[Record], *, progress: Progress = None) -> Self:
        """Learn from new records as `longleaf.io.tables.read_table` reads them."""
        if not hasattr(self, "estimator_"):
            return self.fit_records(records, progress=progress)
        collector = TagCollector(self.classes_)
        return self._learn(collector.texts(records), collector, None, progress)

    def _learn(
        self,
        texts: Iterable[str],
        collector: TagCollector,
        sample_weight: npt.ArrayLike | None,
        progress: Progress,
    ) -> Self:
        learner = self._learner()
        X, Y = self._matrix(texts), collector.indicator()
        learner.partial_fit(X, Y, sample_weight, progress=progress)
        self._number_tags(collector.tags)
        return self

    def refit(
        self,
        texts: Iterable[str],
        tags: Iterable[Iterable[str]],
        labels: Iterable[str] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        progress: Progress = None,
    ) -> Self:
        """Train the classifiers on the paths of some tags anew, from all texts.

        Parameters
        ----------
        texts, tags, sample_weight, progress
            As in `fit`: all rows, old and new.
        labels : iterable of str, optional
            The tags, all if left out; `longleaf.PLT.refit` says what happens.
        """
        learner = self._learner()
        collector = TagCollector.of(tags, self.classes_)
        numbers = None if labels is None else TagIndex(collector.tags).numbers(labels, "labels")
        learner.refit(self._matrix(texts), collector.indicator(), numbers, sample_weight, progress=progress)
        self._number_tags(collector.tags)
        return self

    def add_labels(
        self,
        labels: Iterable[str],
        texts: Iterable[str] | None = None,
        tags: Iterable[Iterable[str]] | None = None,
    ) -> Self:
        """Make room for new tags, and learn them if there are texts.

        Parameters
        ----------
        labels : iterable of str
            The new tags; a tag is never suggested until it has rows.
        texts, tags : optional
            Rows for `partial_fit`, which is all that happens to them.
        """
        learner = self._learner()
        new = _check_tags(labels, "labels")
        known = sorted(set(new).intersection(self.classes_))
        if known:
            raise ValueError(f"labels must be new tags; {known[0]!r} is there already.")
        if (texts is None) != (tags is None):
            raise ValueError("texts and tags must be given together.")
        if texts is None or tags is None:
            learner.add_labels(len(new))
            self._number_tags([*self.classes_, *new])
            return self
        return self._learn(texts, TagCollector.of(tags, [*self.classes_, *new]), None, None)

    def remove_labels(self, labels: Iterable[str]) -> Self:
        """Never suggest some tags again; they keep their places in ``classes_``.

        Texts that carry a removed tag in a later `partial_fit` bring it back.
        """
        learner = self._learner()
        learner.remove_labels(TagIndex(self.classes_).numbers(labels, "labels"))
        return self

    def rename_labels(self, names: Mapping[str, str]) -> Self:
        """Give tags other names; nothing else changes, and readable names go with their tags.

        Parameters
        ----------
        names : mapping of str to str
            The new name of each tag that gets one. Names may change places; no two tags may share one.
        """
        check_is_fitted(self)
        numbers = TagIndex(self.classes_).numbers(names, "names")
        renamed = list(self.classes_)
        for number, name in zip(numbers, _check_tags(names.values(), "names"), strict=True):
            renamed[number] = name
        taken = _first_repeated(renamed)
        if taken is not None:
            raise ValueError(f"names must leave every tag a name of its own; {taken!r} would name two.")
        if self.names is not None:
            self.names = {names.get(tag, tag): readable for tag, readable in self.names.items()}
        self._number_tags(renamed)
        return self

    def _learner(self) -> LabelLearner:
        check_is_fitted(self)
        if not isinstance(self.estimator_, LabelLearner):
            name = type(self.estimator_).__name__
            raise TypeError(f"estimator must be a PLT to go on learning; got {name}.")
        return self.estimator_

    def _number_tags(self, tags: Iterable[str]) -> None:
        self.classes_ = as_objects(tags)


def _check_tags(tags: Iterable[str], name: str) -> list[str]:
    if isinstance(tags, str | bytes):
        raise TypeError(f"{name} must be a list of tags; got a single {type(tags).__name__}.")
    listed = list(tags)
    for tag in listed:
        if not isinstance(tag, str):
            raise TypeError(f"{name} must hold strings; got {type(tag).__name__}.")
    repeated = _first_repeated(listed)
    if not listed or repeated is not None:
        found = "none" if not listed else f"{repeated!r} twice"
        raise ValueError(f"{name} must name at least one tag, and each once; got {found}.")
    return listed


def _first_repeated(tags: list[str]) -> str | None:
    seen: set[str] = set()
    for tag in tags:
        if tag in seen:
            return tag
        seen.add(tag)
    return None
