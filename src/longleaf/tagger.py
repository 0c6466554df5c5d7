"""Texts in, tags out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from longleaf import _tagger_files as files
from longleaf._validation import check_choice, check_count
from longleaf.conformal import MAX_SIZE
from longleaf.encoders.components import DEFAULT_DIMENSIONS, DEFAULT_WEIGHT
from longleaf.encoders.loading import Source as EncoderSource
from longleaf.encoders.loading import load as load_encoder
from longleaf.estimator import LabelEstimator
from longleaf.explain.records import RecordIndex, SimilarRecord
from longleaf.explain.titles import RecordNotes
from longleaf.explain.words import Explanation
from longleaf.fusion.fusion import Fusion
from longleaf.io import storage
from longleaf.io.streams import Source
from longleaf.io.tables import Record, TableReader
from longleaf.io.tag_names import TagNames
from longleaf.plt import PLT
from longleaf.reading import TaggedRows
from longleaf.search.utility import Utility
from longleaf.suggest import Suggester, Suggestions
from longleaf.text.fields import Text, check_text
from longleaf.text.meaning import Meaning
from longleaf.text.tags import (
    Objects,
    TagCollector,
    TagIndex,
    as_objects,
    check_tags,
    first_repeated,
    known_indicator,
    ready_texts,
)
from longleaf.text.utilities import UtilityRows, read_utility
from longleaf.text.vectorizer import TextVectorizer

UNSEEN = ("ignore", "add", "error")

Progress = Callable[[float], None] | None


class Tagger(BaseEstimator):  # type: ignore[misc]
    """Strings in, strings out: a vectorizer, and a model of labels behind it.

    Parameters
    ----------
    estimator : PLT or BR, optional
        ``PLT()`` by default.
    vectorizer : transformer, optional
        ``TextVectorizer`` by default, with the threads of the estimator. Any scikit-learn transformer or
        pipeline that turns a list of strings into a sparse or dense matrix will do, an encoder's embeddings
        included; only `TextVectorizer` streams its texts and can be saved.
    names : mapping of str to str, optional
        Names of tags, such as `longleaf.read_names` reads them. A tagger trained with names finds them in
        texts, learns from them, and suggests also tags of ``names`` that training never saw. This needs a
        `PLT` and a `TextVectorizer`; others only display names. Set after `fit`, names are only displayed.
    encoder : str, path, callable or Encoder, optional
        Adds what texts mean to their words: a sentence encoder as `longleaf.encoders.load` finds it, such as
        ``"minilm"``. Embeddings of training texts are kept on disk, so that training again is fast.
    encoder_weight : float
        The length of the columns that embeddings become, beside words of length 1.
    encoder_dimensions : int
        The number of these columns, the principal components of the embeddings.
    keep_records : bool
        Whether to keep the training records, as evidence for explanations: of each its id, the beginning of
        its title or text and its 64 strongest words, which are saved with the model.

    Attributes
    ----------
    estimator_, vectorizer_
        The fitted components.
    classes_ : array of str objects [tags]
        The tags, in order after `fit`; column and label numbers are places in it.
    fields_ : dict
        The fields of the table that it was trained on, as `longleaf.io.tables.read_table` takes them.
    fusion_ : Fusion or None
        What the names of tags add to the trees; None if there were none, or fewer than 500 rows.
    meaning_ : Meaning or None
        The fitted columns of the encoder; None if there is none.
    records_ : RecordIndex or None
        The training records, if they are kept; None may be assigned to drop them.

    Examples
    --------
    >>> import longleaf as ll
    >>> texts = ["olive oil", "oil of olives", "wheat flour", "flour and wheat"]
    >>> tags = [["oil"], ["oil", "fruit"], ["cereals"], ["cereals"]]
    >>> tagger = ll.Tagger(ll.PLT(n_trees=1, random_state=1)).fit(texts, tags)
    >>> [suggestion.tag for suggestion in tagger.suggest(["olive"], k=1)[0]]
    ['oil']
    """

    kind: ClassVar[str] = "tagger"

    estimator_: LabelEstimator
    vectorizer_: Any
    classes_: Objects
    fields_: dict[str, Any]
    fusion_: Fusion | None = None
    meaning_: Meaning | None = None
    records_: RecordIndex | None = None

    def __init__(
        self,
        estimator: LabelEstimator | None = None,
        vectorizer: Any = None,
        names: Mapping[str, str] | None = None,
        keep_records: bool = False,
        *,
        encoder: EncoderSource | None = None,
        encoder_weight: float = DEFAULT_WEIGHT,
        encoder_dimensions: int = DEFAULT_DIMENSIONS,
    ) -> None:
        self.estimator = estimator
        self.vectorizer = vectorizer
        self.names = names
        self.encoder = encoder
        self.encoder_weight = encoder_weight
        self.encoder_dimensions = encoder_dimensions
        self.keep_records = keep_records

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of components (``estimator__C``); one that was omitted is then created."""
        super().set_params(**_with_components(params, self.estimator, self.vectorizer))
        return self

    def fit(
        self,
        texts: Iterable[Text],
        tags: Iterable[Iterable[str]],
        sample_weight: npt.ArrayLike | None = None,
        *,
        progress: Progress = None,
        checkpoint: str | os.PathLike[str] | None = None,
        client: Any = None,
    ) -> Self:
        """Learn from texts and their tags.

        Parameters
        ----------
        texts : iterable of str or mapping
            Read once, in batches that are not kept; it may be a generator.
        tags : iterable of iterables of str
            As many; a row may have none.
        sample_weight : array [rows], optional
            What an error on each row costs, as a multiple of C.
        progress : callable, optional
            Called now and then with the share of the training that is done.
        checkpoint : str or path, optional
            A folder to resume from, as in `longleaf.PLT.fit`; the vectorizer is fitted again each time.
        client : dask.distributed.Client, optional
            Train the classifiers on its workers; the texts are read here.
        """
        options = {"progress": progress, "checkpoint": checkpoint, "client": client}
        rows = self._read(texts, TagCollector.of(tags), RecordNotes(self.keep_records))
        return self._train(rows, {"sample_weight": sample_weight} | options)

    def fit_records(
        self,
        records: Iterable[Record],
        *,
        progress: Progress = None,
        checkpoint: str | os.PathLike[str] | None = None,
        client: Any = None,
    ) -> Self:
        """Learn from records as `longleaf.io.tables.read_table` reads them, in one pass.

        Parameters
        ----------
        records : TableReader or other iterable of Record
            Texts are not kept, except for what ``keep_records`` says. Of a reader, `fields_` remembers the
            fields.
        progress, checkpoint, client
            As in `fit`.
        """
        options = {"progress": progress, "checkpoint": checkpoint, "client": client}
        self._train(self._read_records(records), options)
        if isinstance(records, TableReader):
            self.fields_ = records.fields
        return self

    def _read_records(self, records: Iterable[Record]) -> TaggedRows:
        """Read records in one pass."""
        collector, notes = TagCollector(), RecordNotes(self.keep_records)
        return self._read(collector.texts(notes.records(records)), collector, notes)

    def _read(self, texts: Iterable[Text], collector: TagCollector, notes: RecordNotes) -> TaggedRows:
        """Read texts as matrices; their tags have been collected when the last one was read."""
        estimator, names = self._unfitted(), None if self.names is None else TagNames.of(self.names)
        vectorizer = _default_vectorizer(estimator) if self.vectorizer is None else clone(self.vectorizer)
        learns_names = isinstance(estimator, PLT) and isinstance(vectorizer, TextVectorizer)
        return TaggedRows.read(
            texts,
            collector,
            notes,
            vectorizer,
            names=names if names and learns_names else None,
            encoder=None if self.encoder is None else load_encoder(self.encoder),
            columns=(self.encoder_weight, self.encoder_dimensions),
            n_jobs=estimator.n_jobs,
        )

    def _train(self, rows: TaggedRows, options: dict[str, Any]) -> Self:
        """Train the estimator with these options of its `fit`."""
        estimator, X, Y, classes = self._unfitted(), rows.X, rows.Y, rows.classes
        if rows.named is None:
            weight = options.pop("sample_weight", None)
            estimator._fit(X, Y, weight, calibrate=True, fresh=rows.fresh, **options)
            self.estimator_, self.fusion_ = estimator, None
        else:
            tags, Y = rows.named.with_unseen(classes, Y)
            n_columns = 0 if rows.meaning is None else rows.meaning.n_columns
            self.fusion_ = rows.named.fit(
                estimator, rows.rows_of, X, Y, tags, options, n_columns=n_columns, fresh=rows.fresh
            )
            self.estimator_, classes = estimator, as_objects(tags)
        self.vectorizer_, self.classes_, self.fields_ = rows.vectorizer, classes, {}
        self.meaning_ = rows.meaning
        self.records_ = rows.notes.index(X, Y)
        self._fuse()
        return self

    def _unfitted(self) -> LabelEstimator:
        """Return an estimator to be trained."""
        estimator = PLT() if self.estimator is None else clone(self.estimator)
        if not isinstance(estimator, LabelEstimator):
            raise TypeError(f"estimator must be a PLT or BR; got {type(estimator).__name__}.")
        return estimator

    def _fuse(self) -> None:
        """Let the estimator score labels as the fusion says, by their counts as they are now."""
        if self.fusion_ is not None:
            self.estimator_.score_map_ = self.fusion_.score_map(self.estimator_.label_counts_)

    def suggest(
        self,
        texts: Iterable[Text],
        k: int | str = 5,
        *,
        max_k: int | None = None,
        tail: float | None = None,
        gain: Mapping[str, float] | None = None,
        utility: Utility | UtilityRows | None = None,
        only: Iterable[str] | None = None,
        never: Iterable[str] | None = None,
        groups: Mapping[str, Any] | None = None,
        explain: bool = False,
        propensity: tuple[float, float] | None = None,
        search: str = "exact",
        beam: int = 10,
        epsilon: float = 0.0,
        max_nodes: int | None = None,
        deadline_ms: float | None = None,
        threshold: float | None = None,
        min_probability: float | None = None,
        n_jobs: int | None = None,
    ) -> list[Suggestions]:
        """Suggest the best tags of each text.

        Parameters
        ----------
        texts : iterable of str or mapping
        k : int or "auto"
            How many tags a text; "auto" returns, for each text, the tags whose expected F1 is largest by
            their probabilities, and none where it is likelier that no tag is right. It relies on calibrated
            probabilities, which a tagger trained with names has.
        max_k : int, optional
            The most tags that "auto" returns, 20 by default; only together with ``k="auto"``.
        tail : float, optional
            The tail dial, from 0 up: 0 is plain precision, 1 PS-PLT; see `longleaf.PLT.top_k`.
        gain : mapping of str to float, optional
            The gain of each tag, from 0 to 1e38; 1 for those that are omitted. Not together with ``tail``.
        utility : Utility or rows, optional
            What tags are worth, instead of ``tail`` and ``gain``, such as ``{"oil": {"a": 5, "b": -1}}``:
            rows, as `longleaf.read_utility` describes them, or a `longleaf.Utility` in the order of
            ``classes_``. Filters and a ``threshold``, which is a smallest utility then, hold besides; ``k``
            must be a number.
        only, never : iterable of str, optional
            The only tags that may be suggested; tags that must not be. Here and in ``gain`` and ``groups``, a
            tag may also be called by its readable name, unless several tags share it.
        groups : mapping of str to object, optional
            The group of some tags: of each group at most the best tag is suggested. Gains must be at most
            1e30 then.
        explain : bool
            Whether to name the words that support each tag.
        min_probability : float, optional
            From 0 to 1: tags with a smaller probability are not suggested, whatever their gain. A
            ``threshold`` is a smallest score, which is gain times probability; both may be given. With a
            ``utility``, its ``a`` must be above 0.
        propensity, search, beam, epsilon, max_nodes, deadline_ms, threshold, n_jobs
            As in `longleaf.PLT.top_k`.

        Returns
        -------
        list of Suggestions
            For each text a list of `Suggestion`, the best first; fewer than k where no more can be had. Each
            list has the attributes ``exact`` and ``gap``, as a `longleaf.TopK` has them for a row.
        """
        check_is_fitted(self)
        suggester = self._suggester
        query = suggester.query(
            k,
            max_k=max_k,
            tail=tail,
            gain=gain,
            utility=utility,
            only=only,
            never=never,
            groups=groups,
            explain=explain,
            propensity=propensity,
            search=search,
            beam=beam,
            epsilon=epsilon,
            max_nodes=max_nodes,
            deadline_ms=deadline_ms,
            threshold=threshold,
            min_probability=min_probability,
            n_jobs=n_jobs,
        )
        kept = list(ready_texts(texts, self.vectorizer_)) if explain else ()
        return suggester.suggest(self._rows(kept if explain else texts), query, kept)

    def fit_sets(
        self, texts: Iterable[Text], tags: Iterable[Iterable[str]], *, max_size: int = MAX_SIZE
    ) -> Self:
        """Fit how large the sets of `suggest_set` must be, on texts that the tagger was not trained on.

        Parameters
        ----------
        texts, tags
            As in `fit`: held-out texts, a thousand or more, like those that will come. Tags that the tagger
            does not know count as missed.
        max_size : int
            The most tags of a set.
        """
        check_is_fitted(self)
        X, Y = self._rows(texts), self.transform_tags(tags, unseen="add")
        if X.shape[0] != Y.shape[0]:
            raise ValueError(f"texts and tags must have the same length; got {X.shape[0]} and {Y.shape[0]}.")
        self.estimator_.fit_sets(X, Y, max_size=max_size)
        return self

    def read_utility(self, source: Source | UtilityRows) -> Utility:
        """Read what tags are worth, once for many calls of `suggest`; see `longleaf.read_utility`.

        Parameters
        ----------
        source : str, path-like or binary file object; or mapping, or iterable of mappings
            Tags may be called by their readable names.
        """
        check_is_fitted(self)
        return read_utility(source, self._suggester.tags)

    def suggest_set(
        self,
        texts: Iterable[Text],
        coverage: float = 0.9,
        *,
        explain: bool = False,
        n_jobs: int | None = None,
    ) -> list[Suggestions]:
        """Suggest for each text a set of tags that holds, on average, this share of its true tags or more.

        Parameters
        ----------
        texts : iterable of str or mapping
        coverage : float
            Above 0 and below 1; `longleaf.PLT.predict_set` says what is promised. Needs `fit_sets`.
        explain : bool
            Whether to name the words that support each tag.
        n_jobs : int, optional
            Threads; the estimator's own by default.

        Returns
        -------
        list of list of Suggestion
            Per text, the most probable first.
        """
        check_is_fitted(self)
        suggester = self._suggester
        query = suggester.set_query(coverage, explain=explain, n_jobs=n_jobs)
        kept = list(ready_texts(texts, self.vectorizer_)) if explain else ()
        return suggester.suggest(self._rows(kept if explain else texts), query, kept)

    def explain(self, text: Text, tag: str, *, meaning_by_word: bool = False) -> Explanation:
        """Say what each word of a text added to the log probability of a tag.

        The rule is that of `longleaf.explain`: integrated gradients from the empty text, complete.

        Parameters
        ----------
        text : str or mapping
        tag : str
            Any tag of `classes_`, or its readable name.
        meaning_by_word : bool
            Whether to divide what the text's meaning added among its words, instead of one number for all:
            each word gets what is lost when it is taken out. The text is embedded once per word.
        """
        check_text(text)
        check_is_fitted(self)
        suggester = self._suggester
        return suggester.explain(
            self._rows([text]), 0, suggester.tags.number(tag), text, meaning_by_word=meaning_by_word
        )

    def similar(self, text: Text, tag: str, n: int = 3) -> tuple[SimilarRecord, ...]:
        """Return the training records that carry a tag and are most similar to a text.

        Parameters
        ----------
        text : str or mapping
        tag : str
            Any tag of `classes_`.
        n : int
            At most so many; records that have no word in common with the text are omitted.

        Returns
        -------
        tuple of SimilarRecord
            The id, title and similarity of each, best first; of equally similar ones, in order of training.
        """
        check_text(text)
        check_is_fitted(self)
        suggester = self._suggester
        if suggester.records is None:
            raise ValueError("keep_records must be true in fit to find similar records; it was false.")
        return suggester.similar(self._matrix([text]), suggester.tags.number(tag), check_count(n, "n"))

    def predict(self, texts: Iterable[Text]) -> list[list[str]]:
        """Return the top tags of each text, best first, as many as the estimator's ``k``.

        `transform_tags` turns them into an indicator.
        """
        check_is_fitted(self)
        labels = self.estimator_.top_k(self._rows(texts)).labels
        return [self.classes_[row[row >= 0]].tolist() for row in labels]

    def predict_proba(
        self, texts: Iterable[Text], tags: Iterable[str] | None = None
    ) -> npt.NDArray[np.float32]:
        """Return the probability of every given tag for every text.

        Parameters
        ----------
        texts : iterable of str or mapping
        tags : iterable of str, optional
            Which tags, also by readable name, in the order of the columns; by default all, as in
            ``classes_``.

        Returns
        -------
        float32 array [texts, given tags]
            0 for a tag without training rows. Tags do not exclude each other: a row need not sum to 1.
        """
        check_is_fitted(self)
        labels = None if tags is None else self._suggester.tags.numbers(tags, "tags")
        return self.estimator_.predict_proba(self._rows(texts), labels)

    def score(self, texts: Iterable[Text], tags: Iterable[Iterable[str]]) -> float:
        """Return the precision at 1 as a fraction; tags that training never saw cannot be hit."""
        check_is_fitted(self)
        return self.estimator_.score(self._rows(texts), self.transform_tags(tags))

    def transform_tags(self, tags: Iterable[Iterable[str]], *, unseen: str = "ignore") -> sp.csr_array:
        """Turn tags into an indicator whose columns are `classes_`, as for `longleaf.metrics`.

        Parameters
        ----------
        tags : iterable of iterables of str
        unseen : {"ignore", "add", "error"}
            What becomes of tags that training never saw: they are omitted; get columns after those of
            `classes_`, so that they count in a metric's denominators; or are an error.

        Returns
        -------
        csr_array of float32 [rows, tags]
        """
        check_is_fitted(self)
        return known_indicator(tags, self.classes_, check_choice(unseen, "unseen", UNSEEN))

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the model as a folder, for `longleaf.load`; see `longleaf.PLT.save`."""
        check_is_fitted(self)
        components = (
            *(self.estimator_, self.vectorizer_, self.classes_, self.names),
            *(self.fields_, self.records_, self.fusion_, self.meaning_),
        )
        storage.save_folder(path, self.kind, *files.to_arrays(*components), force)

    @classmethod
    def _from_folder(cls, folder: storage.Folder) -> Self:
        found = files.from_folder(folder)
        tagger = cls(clone(found["estimator_"]), clone(found["vectorizer_"]))
        tagger.__dict__.update(found)
        tagger._fuse()
        return tagger

    def partial_fit(
        self,
        texts: Iterable[Text],
        tags: Iterable[Iterable[str]],
        sample_weight: npt.ArrayLike | None = None,
        *,
        progress: Progress = None,
    ) -> Self:
        """Learn from new texts without the old ones, new tags included; the first call is `fit`.

        The vectorizer stays as it was fitted: words that it does not know are not learned, and document
        frequencies do not change. ``TextVectorizer(hashing=2**18, min_df=0.0)`` knows every word. A tag's
        number, its place in ``classes_``, never changes; new tags come last. A tagger that keeps records
        keeps the new ones, too.

        Parameters
        ----------
        texts, tags, sample_weight, progress
            As in `fit`; `longleaf.PLT.partial_fit` says what happens.
        """
        if not hasattr(self, "estimator_"):
            return self.fit(texts, tags, sample_weight, progress=progress)
        return self._learn(
            texts, TagCollector.of(tags, self.classes_), self._notes(), sample_weight, progress
        )

    def partial_fit_records(self, records: Iterable[Record], *, progress: Progress = None) -> Self:
        """Learn from new records as `longleaf.io.tables.read_table` reads them."""
        if not hasattr(self, "estimator_"):
            return self.fit_records(records, progress=progress)
        collector, notes = TagCollector(self.classes_), self._notes()
        texts = collector.texts(notes.records(records), self._suggester.fields)
        return self._learn(texts, collector, notes, None, progress)

    def _learn(
        self,
        texts: Iterable[Text],
        collector: TagCollector,
        notes: RecordNotes,
        sample_weight: npt.ArrayLike | None,
        progress: Progress,
    ) -> Self:
        model = self._plt()
        X = self._matrix(notes.texts(ready_texts(texts, self.vectorizer_)))
        Y = collector.indicator()
        model.partial_fit(X, Y, sample_weight, progress=progress)
        self.classes_ = as_objects(collector.tags)
        self._fuse()
        if self.records_ is not None:
            self.records_ = self.records_.extended(X, Y, notes.ids, notes.titles)
        return self

    def calibrate(self, texts: Iterable[Text], tags: Iterable[Iterable[str]]) -> Self:
        """Fit what makes probabilities that can be believed of what the model says; nothing else changes.

        A tagger with names is calibrated together with them in `fit`, and cannot be calibrated again.

        Parameters
        ----------
        texts, tags
            Rows that the tagger was not trained on, a thousand or two; see `longleaf.PLT.calibrate`.
        """
        check_is_fitted(self)
        return self._calibrate(texts, TagCollector.of(tags, self.classes_))

    def calibrate_records(self, records: Iterable[Record]) -> Self:
        """Calibrate on records as `longleaf.io.tables.read_table` reads them."""
        check_is_fitted(self)
        collector = TagCollector(self.classes_)
        return self._calibrate(collector.texts(records, self._suggester.fields), collector)

    def _calibrate(self, texts: Iterable[Text], collector: TagCollector) -> Self:
        if self.fusion_ is not None:
            raise ValueError("fusion_ must be None to calibrate: a tagger with names is calibrated in fit.")
        X = self._matrix(ready_texts(texts, self.vectorizer_))
        self.estimator_.calibrate(X, collector.indicator())
        return self

    def _notes(self) -> RecordNotes:
        """Return notes for further rows."""
        return RecordNotes(self.records_ is not None, 0 if self.records_ is None else len(self.records_))

    def refit(
        self,
        texts: Iterable[Text],
        tags: Iterable[Iterable[str]],
        labels: Iterable[str] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        progress: Progress = None,
    ) -> Self:
        """Train the classifiers on the paths of some tags again, from all texts.

        Parameters
        ----------
        texts, tags, sample_weight, progress
            As in `fit`: all rows, old and new.
        labels : iterable of str, optional
            The tags, all by default; `longleaf.PLT.refit` says what happens. Kept records become these rows,
            numbered from 0.
        """
        model, notes = self._plt(), RecordNotes(self.records_ is not None)
        collector = TagCollector.of(tags, self.classes_)
        numbers = None if labels is None else TagIndex(collector.tags).numbers(labels, "labels")
        X = self._matrix(notes.texts(ready_texts(texts, self.vectorizer_)))
        Y = collector.indicator()
        model.refit(X, Y, numbers, sample_weight, progress=progress)
        self.classes_ = as_objects(collector.tags)
        self.records_ = notes.index(X, Y)
        self._fuse()
        return self

    def add_labels(
        self,
        labels: Iterable[str],
        texts: Iterable[Text] | None = None,
        tags: Iterable[Iterable[str]] | None = None,
    ) -> Self:
        """Add new tags, and learn them if there are texts.

        Parameters
        ----------
        labels : iterable of str
            The new tags; a tag is never suggested until it has rows.
        texts, tags : optional
            Rows for `partial_fit`, which is all that happens to them.
        """
        model = self._plt()
        new = check_tags(labels, "labels")
        known = sorted(set(new).intersection(self.classes_))
        if known:
            raise ValueError(f"labels must be new tags; {known[0]!r} is there already.")
        if (texts is None) != (tags is None):
            raise ValueError("texts and tags must be given together.")
        if texts is None or tags is None:
            model.add_labels(len(new))
            self.classes_ = as_objects([*self.classes_, *new])
            if self.records_ is not None:
                self.records_ = self.records_.with_labels(len(self.classes_))
            self._fuse()
            return self
        return self._learn(texts, TagCollector.of(tags, [*self.classes_, *new]), self._notes(), None, None)

    def remove_labels(self, labels: Iterable[str]) -> Self:
        """Never suggest some tags again; they keep their places in ``classes_``.

        Texts that carry a removed tag in a later `partial_fit` bring it back.
        """
        model = self._plt()
        numbers = TagIndex(self.classes_).numbers(labels, "labels")
        model.remove_labels(numbers)
        if self.records_ is not None:
            self.records_ = self.records_.without(numbers)
        if self.fusion_ is not None:
            self.fusion_ = self.fusion_.without(numbers)
        self._fuse()
        return self

    def rename_labels(self, names: Mapping[str, str]) -> Self:
        """Return tags other names; nothing else changes, and readable names go with their tags.

        Parameters
        ----------
        names : mapping of str to str
            The new name of each tag that gets one. Names may change places; no two tags may share one.
        """
        check_is_fitted(self)
        numbers = TagIndex(self.classes_).numbers(names, "names")
        renamed = list(self.classes_)
        for number, name in zip(numbers, check_tags(names.values(), "names"), strict=True):
            renamed[number] = name
        taken = first_repeated(renamed)
        if taken is not None:
            raise ValueError(f"names must leave every tag a name of its own; {taken!r} would name two.")
        if self.names is not None:
            self.names = TagNames.of(self.names).renamed(names)
        self.classes_ = as_objects(renamed)
        return self

    def _plt(self) -> PLT:
        check_is_fitted(self)
        if not isinstance(self.estimator_, PLT):
            name = type(self.estimator_).__name__
            raise TypeError(f"estimator must be a PLT to go on learning; got {name}.")
        return self.estimator_

    @property
    def origin_(self) -> dict[str, Any]:
        """Where the model came from."""
        return self.estimator_.origin_

    @property
    def _suggester(self) -> Suggester:
        """The fitted model, ready to suggest; the index of tags is made once, and never saved or pickled."""
        tags: TagIndex | None = self.__dict__.get("_tags")
        if tags is None or tags.tags is not self.classes_ or tags.names is not self.names:
            tags = self.__dict__["_tags"] = TagIndex(self.classes_, self.names)
        return Suggester(self.estimator_, tags, self.vectorizer_, self.records_, self.fusion_, self.meaning_)

    def _matrix(self, texts: Iterable[Text]) -> Any:
        return self._suggester.matrix(texts)

    def _rows(self, texts: Iterable[Text]) -> Any:
        return self._suggester.rows(texts)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_tags"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def suggester_of(model: LabelEstimator | Tagger) -> Suggester:
    """Return the suggester of any model; that of features calls labels by their numbers."""
    return model._suggester if isinstance(model, Tagger) else Suggester(model)


def _default_vectorizer(estimator: LabelEstimator) -> TextVectorizer:
    """Return the vectorizer that belongs to an estimator: it uses as many threads."""
    return TextVectorizer.for_tags(n_jobs=estimator.n_jobs)


def _with_components(params: dict[str, Any], estimator: Any, vectorizer: Any) -> dict[str, Any]:
    """Add a default component to the parameters that are meant for it, such as ``estimator__C``.

    scikit-learn sets the parameters of components that exist; those of a tagger are None if omitted.

    Parameters
    ----------
    params : dict
        The parameters of ``set_params``.
    estimator, vectorizer
        The components as they are, None if omitted.
    """
    found = dict(params)
    if _lacks("estimator", found, estimator):
        found["estimator"] = PLT()
    if _lacks("vectorizer", found, vectorizer):
        chosen = found.get("estimator", estimator)
        found["vectorizer"] = _default_vectorizer(PLT() if chosen is None else chosen)
    return found


def _lacks(component: str, params: dict[str, Any], now: Any) -> bool:
    return params.get(component, now) is None and any(name.startswith(f"{component}__") for name in params)
