"""Block coordinate ascent: the predictions of one row after another are replaced by the best ones.

Given are a model, the rows of a batch, and a measure; the result is k labels per row. If the predictions of
all other rows are fixed, one more prediction of label j adds ``a_j * eta_ij + b_j`` to the measure, and the
best k labels of row i are a search by this utility. The utility must not count row i itself. That concerns
only the labels that are predicted for it now: the search is asked for more than k labels by the utility of
all rows, and those that the row has get lines of their own.

Rows are searched in blocks by one utility, so that the search is fast. Then they are taken one by one, each
with the counts as they are by now, among the labels found for it and those it has. So the measure never
falls, however large the blocks are; a large block only misses labels that became better since it began. What
was found is kept, and improved without a search until nothing changes; then all rows are searched again.
After a search that changes nothing, no row can be improved by itself.

Source: Schultheis et al., "Generalized test utilities for long-tail performance in extreme multi-label
classification", NeurIPS 2023 (arXiv 2311.05081).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from longleaf.objectives.measures import Doubles, Measure
from longleaf.objectives.rows import Counts, Ints, RowSet
from longleaf.search.top_k import TopK
from longleaf.search.utility import Utility

BLOCK_ROWS = 64
WIDTH = 4
"""How many times k labels are found for a row: k may be predicted already, the others are for changes."""
MOST_ROUNDS = 20
"""Of improvements without a search."""
LEAST_GAIN = 1e-9
"""Of the sum over labels; less is rounding."""

Labels = npt.NDArray[np.int32]


class Ascent:
    """Predictions on their way up.

    Attributes
    ----------
    labels, eta : arrays [rows, k]
        What is predicted now, and the probabilities; -1 where nothing is predicted yet.
    counts : Counts
        What it adds up to.
    """

    def __init__(self, rows: RowSet, start: TopK, measure: Measure, positives: Doubles) -> None:
        self._rows, self.counts = rows, Counts.of(measure, start, positives)
        self.labels, self.eta = start.labels.copy(), start.probabilities.copy()
        width = min(WIDTH * self.labels.shape[1], rows.n_labels)
        self._found = np.full((rows.n_rows, width), -1, np.int32)
        self._found_eta = np.zeros((rows.n_rows, width), np.float32)
        self._utility = Utility(*self.counts.lines(np.arange(rows.n_labels)))

    def search(self, order: Ints, block_rows: int = BLOCK_ROWS) -> int:
        """Search all rows in this order and improve their predictions; return how many changed."""
        changed = 0
        for block in self._rows.blocks(order, block_rows):
            top = self._rows.search(self._found.shape[1], self._utility, block)
            self._found[block], self._found_eta[block] = top.labels, top.probabilities
            before = self.labels[block]
            if moved := self.improve(block):
                touched = np.unique(np.append(before, self.labels[block]))
                self._price(touched[touched >= 0])
            changed += moved
        return changed

    def settle(self, order: Ints, block_rows: int = BLOCK_ROWS) -> None:
        """Improve predictions among the labels found so far, until none changes."""
        for _ in range(MOST_ROUNDS):
            if not sum(self.improve(block) for block in self._rows.blocks(order, block_rows)):
                break
        self._price(np.arange(self._rows.n_labels))

    def _price(self, labels: npt.NDArray[np.integer]) -> None:
        """Bring the utility of some labels up to date."""
        a, b = self.counts.lines(labels)
        self._utility = self._utility.replace(labels, a=a, b=b)

    def improve(self, block: Ints) -> int:
        """Improve rows one by one among the labels found and those they have; return how many changed."""
        labels, eta = self._candidates(block)
        keys, k, moved = self._keys(labels, eta), self.labels.shape[1], 0
        best = -np.partition(-keys, k - 1, axis=1)[:, :k]
        # Rows that would not change by the counts before the block are left to the next time.
        for place in np.flatnonzero(best.sum(axis=1) > keys[:, :k].sum(axis=1) + LEAST_GAIN):
            row, own, own_eta = block[place], labels[place], eta[place]
            key = self._keys(own[None], own_eta[None])[0]
            order = np.argsort(-key, kind="stable")[:k]  # of equals those that are predicted already
            if key[order].sum() <= key[:k].sum() + LEAST_GAIN:
                continue
            given = np.flatnonzero(own[:k] >= 0)
            self.counts.change(own[given], own_eta[given], -1.0)
            self.counts.change(own[order], own_eta[order], 1.0)
            self.labels[row], self.eta[row] = own[order], own_eta[order]
            moved += 1
        return moved

    def _candidates(self, block: Ints) -> tuple[Labels, Doubles]:
        """Return the labels that rows have, then those found; -1 where one is found that they have."""
        now, found = self.labels[block], self._found[block]
        known = (found[:, :, None] == now[:, None, :]).any(axis=2)
        labels = np.append(now, np.where(known, -1, found), axis=1)
        eta = np.append(self.eta[block], self._found_eta[block], axis=1)
        return labels, eta.astype(np.float64)

    def _keys(self, labels: Labels, eta: Doubles) -> Doubles:
        """Return what each candidate adds to the measure, after the first k are taken back."""
        k = self.labels.shape[1]
        own_a, own_b = self.counts.lines(labels[:, :k], without=eta[:, :k])
        a, b = self.counts.lines(labels[:, k:])
        keys = np.append(own_a * eta[:, :k] + own_b, a * eta[:, k:] + b, axis=1)
        return np.where(labels >= 0, keys, -np.inf)

    def top(self) -> TopK:
        """Return the predictions, what adds the most to the measure first."""
        keys = self._keys(self.labels, self.eta.astype(np.float64))
        order = np.argsort(-keys, axis=1, kind="stable")
        return TopK(
            np.take_along_axis(self.labels, order, axis=1),
            np.take_along_axis(keys, order, axis=1).astype(np.float32),
            np.take_along_axis(self.eta, order, axis=1),
            np.zeros(len(order), np.int64),
        )
