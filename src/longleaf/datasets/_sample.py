"""A few thousand laws of the European Union and the concepts that describe them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import BinaryIO, cast

import numpy as np
import scipy.sparse as sp

from longleaf.io.names import read_names
from longleaf.io.tables import Record, read_table
from longleaf.text.fields import joined_text
from longleaf.text.tags import TagCollector
from longleaf.text.vectorizer import TextVectorizer

TRAIN, TEST, NAMES = "eurlex_train.jsonl.xz", "eurlex_test.jsonl.xz", "tag_names.json.xz"


@dataclass(frozen=True, eq=False)
class Sample:
    """A small real data set with a long tail: laws in, EuroVoc concepts out.

    Attributes
    ----------
    records_train, records_test : list of dict
        The laws, each with the fields ``title`` and ``text``.
    texts_train, texts_test : list of str
        The same as plain texts, each with its title before its text.
    tags_train, tags_test : list of list of str
        The ids of the concepts that describe each law. Some concepts occur in only one of the two.
    titles_test : list of str
        The titles alone, of the test laws.
    names : dict of str to str
        The English name of each concept, by id.
    X_train, X_test : csr_matrix of float32 [rows, features]
        The texts, transformed by a `longleaf.text.TextVectorizer` fitted on ``texts_train``.
    Y_train, Y_test : csr_array of float32 [rows, labels]
        The tags as indicators; the labels are all concepts, in the order of ``names``.
    label_names : list of str
        The name of each label.
    """

    records_train: list[dict[str, str]] = field(repr=False)
    tags_train: list[list[str]] = field(repr=False)
    records_test: list[dict[str, str]] = field(repr=False)
    tags_test: list[list[str]] = field(repr=False)
    names: dict[str, str] = field(repr=False)

    @cached_property
    def texts_train(self) -> list[str]:
        """The training laws as plain texts."""
        return [joined_text(law) for law in self.records_train]

    @cached_property
    def texts_test(self) -> list[str]:
        """The test laws as plain texts."""
        return [joined_text(law) for law in self.records_test]

    @property
    def titles_test(self) -> list[str]:
        """The titles of the test laws."""
        return [law["title"] for law in self.records_test]

    @cached_property
    def _features(self) -> tuple[sp.csr_matrix[np.float32], sp.csr_matrix[np.float32]]:
        vectorizer = TextVectorizer()
        return vectorizer.fit_transform(self.texts_train), vectorizer.transform(self.texts_test)

    @property
    def X_train(self) -> sp.csr_matrix[np.float32]:  # noqa: N802
        """The features of the training laws, computed on first access."""
        return self._features[0]

    @property
    def X_test(self) -> sp.csr_matrix[np.float32]:  # noqa: N802
        """The features of the test laws."""
        return self._features[1]

    @cached_property
    def Y_train(self) -> sp.csr_array:  # noqa: N802
        """The labels of the training laws."""
        return TagCollector.of(self.tags_train, known=self.names).indicator()

    @cached_property
    def Y_test(self) -> sp.csr_array:  # noqa: N802
        """The labels of the test laws."""
        return TagCollector.of(self.tags_test, known=self.names).indicator()

    @property
    def label_names(self) -> list[str]:
        """The name of each label."""
        return list(self.names.values())


def load_sample() -> Sample:
    """Load the sample: 4,000 laws for training and 1,000 for testing, drawn from EURLEX57K.

    The files are next to this module, as tables that ``longleaf train`` can also read. Loading takes a
    moment.

    Examples
    --------
    >>> sample = load_sample()
    >>> len(sample.texts_train), len(sample.texts_test)
    (4000, 1000)
    >>> [sample.names[tag] for tag in sample.tags_test[60]]
    ['Ireland', 'wood product', 'Taiwan', 'dumping']
    """
    train, test = _read(TRAIN), _read(TEST)
    with _open(NAMES) as file:
        names = dict(read_names(file))
    return Sample(
        [law.fields for law in train],
        [law.tags for law in train],
        [law.fields for law in test],
        [law.tags for law in test],
        names,
    )


def _read(name: str) -> list[Record]:
    with _open(name) as file, read_table(file, strict=True) as reader:
        return list(reader)


def _open(name: str) -> BinaryIO:
    return cast(BinaryIO, files("longleaf.datasets").joinpath(name).open("rb"))
