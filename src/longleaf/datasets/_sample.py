"""A few thousand laws of the European Union and the concepts that describe them."""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass, field
from importlib.resources import files
from typing import BinaryIO, cast

import numpy as np
import scipy.sparse as sp

from longleaf.io.xmlc import load_xmlc


@dataclass(frozen=True, eq=False)
class Sample:
    """A small real data set with a long tail: words of laws in, EuroVoc concepts out.

    Attributes
    ----------
    X_train, X_test : csr_matrix of float32 [rows, features]
        Words of a law by sublinear tf-idf.
    Y_train, Y_test : csr_matrix of float32 [rows, labels]
        Ones where a concept describes the law. Some concepts occur in only one of the two.
    label_names : tuple of str
        The English name of each label.
    titles_test : tuple of str
        The title of each test row.
    """

    X_train: sp.csr_matrix[np.float32] = field(repr=False)
    Y_train: sp.csr_matrix[np.float32] = field(repr=False)
    X_test: sp.csr_matrix[np.float32] = field(repr=False)
    Y_test: sp.csr_matrix[np.float32] = field(repr=False)
    label_names: tuple[str, ...] = field(repr=False)
    titles_test: tuple[str, ...] = field(repr=False)


def load_sample() -> Sample:
    """Read the sample: 4,000 laws to train on and 1,000 to be judged by, drawn from EURLEX57K.

    Examples
    --------
    >>> sample = load_sample()
    >>> sample.X_train.shape[0], sample.X_test.shape[0]
    (4000, 1000)
    """
    return Sample(
        *_read_xmlc("eurlex_train.txt.xz"),
        *_read_xmlc("eurlex_test.txt.xz"),
        _read_strings("tag_names.json.xz"),
        _read_strings("titles_test.json.xz"),
    )


def _read_xmlc(name: str) -> tuple[sp.csr_matrix[np.float32], sp.csr_matrix[np.float32]]:
    with files("longleaf.datasets").joinpath(name).open("rb") as file:
        return load_xmlc(cast(BinaryIO, file))


def _read_strings(name: str) -> tuple[str, ...]:
    raw = files("longleaf.datasets").joinpath(name).read_bytes()
    return tuple(cast(list[str], json.loads(lzma.decompress(raw))))
