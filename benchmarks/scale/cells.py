"""The cells of the scale benchmark: how much data of which kind, and how to make it."""

import math
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.settings import BEAM, Entry, Search
from longleaf.datasets.generators import make_hierarchy, make_topics

GENERATORS = {"hierarchy": make_hierarchy, "topics": make_topics}
REAL = "tib-sid"
SOURCES = (*GENERATORS, REAL)
SEED = 1
DEV_ROWS = 2_000

# Amazon-670K's shape: the paper's table; its features a row are those of the XMLC repository.
AMAZON_LABELS, AMAZON_ROWS, AMAZON_FEATURES = 670_091, 490_449, 135_909
LABELS_PER_ROW, FEATURES_PER_ROW = 5.45, 75.0
NOISE = 0.6  # gives p@5 in the thirties, as the paper has it on Amazon-670K

# A million divided by powers of two: halving ends in clusters of 61 labels at every size. On another grid
# they have between 50 and 100, and ten clusters of that saw-tooth hide how a beam's cost grows.
LABEL_GRID = (977, 3_906, 15_625, 62_500, 250_000, 1_000_000)
REAL_GRID = (977, 1_953, 3_906, 7_812, 15_625, 31_250)
BASE_LABELS = 15_625
ROW_FACTORS = (0.5, 1, 2, 4, 8, 16, 32)
K_GRID = (1, 5, 20, 100)
K = 5

PLAIN, TAIL, BEAM_SEARCH = "exact", "exact, tail 1", "beam 10"
SEARCHES = (Search(PLAIN), Search(TAIL, {"tail": 1.0}, gains=True), Search(BEAM_SEARCH, BEAM))


@dataclass(frozen=True)
class Cell:
    """So many labels, rows and features of one source; ``rows`` is None for as many as the source has."""

    source: str
    labels: int
    rows: int | None = None
    features: int | None = None

    @property
    def name(self) -> str:
        """The cell's key in the saved result."""
        return f"{self.source}-{self.labels}" + ("" if self.rows is None else f"-{self.rows}")

    @property
    def is_base(self) -> bool:
        """Whether this is the cell on which k is varied."""
        return self.labels == BASE_LABELS and self.rows in (None, usual_rows(self.labels))


def usual_rows(labels: int) -> int:
    """As many rows a label as Amazon-670K has, so that the tail stays as long when the labels grow."""
    return round(labels * AMAZON_ROWS / AMAZON_LABELS)


def usual_features(labels: int) -> int:
    """Let the vocabulary grow as the square root, near which Heaps' law has it, up to Amazon-670K's."""
    return round(AMAZON_FEATURES * math.sqrt(labels / AMAZON_LABELS))


def curves(sources: list[str], largest: int) -> list[list[Cell]]:
    """Return the cells to measure, in lists of growing cost, with at most ``largest`` labels and rows."""
    grid = [labels for labels in LABEL_GRID if labels <= largest]
    found = []
    for source in sources:
        if source == REAL:
            found.append([Cell(source, labels) for labels in REAL_GRID if labels <= largest])
            continue
        by_labels = [Cell(source, labels, usual_rows(labels), usual_features(labels)) for labels in grid]
        base = Cell(source, BASE_LABELS, usual_rows(BASE_LABELS), usual_features(BASE_LABELS))
        by_rows = [replace(base, rows=round(factor * usual_rows(BASE_LABELS))) for factor in ROW_FACTORS]
        found += [by_labels, [cell for cell in by_rows if (cell.rows or 0) <= largest]]
    return found


def entry(cell: Cell, C: float = 16.0) -> Entry:
    """One tree of the paper, asked in three ways; on the base cell for several k."""
    asked = [replace(search, k=k) for k in (K_GRID if cell.is_base else (K,)) for search in SEARCHES]
    params: dict[str, Any] = {"n_trees": 1, "arity": 2, "max_leaf": 100, "refine": False}
    params |= {"random_state": 1}
    params |= {"loss": "log", "C": C, "bias": 1.0}
    setting = f"1 binary tree, log loss, C={C:g}"
    return Entry("longleaf", "benchmarks.systems.longleaf:Longleaf", setting, params, tuple(asked))


def prepare(cell: Cell, folder: Path) -> None:
    """Make the data of a cell: splits as `benchmarks.data.load` reads them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if cell.source == REAL:
        _subsample_real(cell, folder)
        return
    assert cell.rows is not None
    assert cell.features is not None
    X, Y = GENERATORS[cell.source](
        cell.rows,
        cell.features,
        cell.labels,
        n_test=DEV_ROWS,
        labels_per_row=LABELS_PER_ROW,
        features_per_row=FEATURES_PER_ROW,
        noise=NOISE,
        random_state=SEED,
    )
    data.save(folder, "train", X[: cell.rows], Y[: cell.rows])
    data.save(folder, "dev", X[cell.rows :], Y[cell.rows :])


def _subsample_real(cell: Cell, folder: Path) -> None:
    """Keep a random choice of the labels seen in training, and the rows that still have one."""
    random = np.random.default_rng(SEED)
    whole = data.prepare(REAL)
    train_labels = data.load(whole, "train")[1]
    seen = np.flatnonzero(np.bincount(train_labels.indices, minlength=train_labels.shape[1]))
    chosen = np.sort(random.choice(seen, min(cell.labels, len(seen)), replace=False))
    for split in data.SPLITS:
        X, Y = data.load(whole, split)
        Y = Y.tocsc()[:, chosen].tocsr()
        rows = np.flatnonzero(np.diff(Y.indptr))
        if split == "dev" and len(rows) > DEV_ROWS:
            rows = np.sort(random.choice(rows, DEV_ROWS, replace=False))
        data.save(folder, split, X[rows], Y[rows])
