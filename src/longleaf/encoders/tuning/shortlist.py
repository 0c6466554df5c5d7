"""The labels that are hard to tell from those of a text, where there are too many to train on all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf.plt import PLT
from longleaf.text.vectorizer import TextVectorizer

LENGTH = 60
"""Labels per text."""

Labels = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Shortlists:
    """Per text the labels that one label tree over words ranks highest.

    AttentionXML (You et al., NeurIPS 2019) and XR-Transformer (Zhang et al., NeurIPS 2021) train on such
    lists; those of training texts come from a model that has seen them.

    Attributes
    ----------
    train, validation : array of int32 [texts, m]
        -1 where there are fewer.
    """

    train: Labels
    validation: Labels

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        Y: Any,
        validation: Sequence[str],
        *,
        seed: int,
        checkpoint: Path | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Shortlists:
        """Train the tree, and rank the labels of all texts.

        Parameters
        ----------
        texts : sequence of str
        Y : csr_array [texts, labels]
        validation : sequence of str
        seed : int
        checkpoint : Path, optional
            Where the training of the tree is kept.
        progress : callable, optional
            Called with the share of the training of the tree.
        """
        vectorizer = TextVectorizer.for_tags(n_jobs=-1)
        X = vectorizer.fit_transform(texts)
        tree = PLT(n_trees=1, refine=False, random_state=seed)
        tree.fit(X, Y, checkpoint=checkpoint, progress=progress)
        k = min(LENGTH, Y.shape[1])

        def ranked(rows: Any) -> Labels:
            return np.asarray(tree.top_k(rows, k=k, search="beam").labels, np.int32)

        held_out = ranked(vectorizer.transform(validation)) if validation else np.zeros((0, k), np.int32)
        return cls(ranked(X), held_out)
