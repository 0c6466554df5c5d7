"""The files that every system is measured on, converted once so that each worker loads them fast."""

import lzma
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
CACHE = ROOT / "build" / "bench-data"
NAMES = ("eurlex57k", "tib-sid")
SPLITS = ("train", "dev")
SAMPLE_SEED = 1


def source_folder() -> Path:
    """Return the folder of the shared data sets: ``LONGLEAF_DATA``, or the one beside the checkout."""
    return Path(os.environ.get("LONGLEAF_DATA", ROOT.parent / "shared" / "data"))


def prepare(name: str, rows: int | None = None, cache: Path = CACHE) -> Path:
    """Convert a data set once and return its folder.

    Parameters
    ----------
    name : str
        A folder of the shared data, with ``train.tfidf.txt.xz`` and ``dev.tfidf.txt.xz``.
    rows : int, optional
        Keep only a random sample of that many rows of each split; all of them when left out.
    cache : Path
        Where the converted sets are kept.

    Returns
    -------
    Path
        A folder with, for each split, the features and labels as CSR (``train.X.npz``, ``train.Y.npz``)
        and the text in the XMLC format (``train.txt``), which is all that omikuji reads.
    """
    folder = cache / (name if rows is None else f"{name}-{rows}-rows")
    if folder.exists():
        return folder
    unfinished = folder.with_suffix(".tmp")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for split in SPLITS:
        source = source_folder() / name / f"{split}.tfidf.txt.xz"
        if not source.exists():
            raise FileNotFoundError(f"{source} must exist; set LONGLEAF_DATA to the folder of the data sets.")
        with lzma.open(source, "rt") as lines:
            write_split(unfinished, split, lines.read().splitlines(), rows)
    unfinished.rename(folder)
    return folder


def write_split(folder: Path, split: str, lines: list[str], rows: int | None = None) -> None:
    """Write one split, given as the lines of an XMLC file, header first."""
    header, body = lines[0], lines[1:]
    features, labels = (int(number) for number in header.split()[1:])
    if rows is not None and rows < len(body):
        chosen = np.random.default_rng(SAMPLE_SEED).choice(len(body), rows, replace=False)
        body = [body[row] for row in sorted(chosen)]
    text = folder / f"{split}.txt"
    text.write_text("\n".join([f"{len(body)} {features} {labels}", *body]) + "\n")
    save(folder, split, *_parse(text, len(body), features, labels))


def save(folder: Path, split: str, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
    """Keep features and labels of a split where `load` finds them."""
    sp.save_npz(folder / f"{split}.X.npz", X, compressed=False)
    sp.save_npz(folder / f"{split}.Y.npz", Y, compressed=False)


def load(folder: Path, split: str) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Load features and labels of a converted split."""
    X, Y = (sp.csr_matrix(sp.load_npz(folder / f"{split}.{which}.npz")) for which in "XY")
    return X, Y


def _parse(text: Path, rows: int, features: int, labels: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    with text.open("rb") as file:
        file.readline()
        X, tuples = load_svmlight_file(
            file, n_features=features, dtype=np.float32, multilabel=True, zero_based=True
        )
    counts = [len(row) for row in tuples]
    indices = np.fromiter((label for row in tuples for label in sorted(row)), np.int32, sum(counts))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    ones = np.ones(len(indices), np.float32)
    X = sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=(rows, features))
    return X, sp.csr_matrix((ones, indices, indptr), shape=(rows, labels))


def trained(name: str, seed: int, kind: str = "default", **params: Any) -> Any:
    """Return a model of a whole data set, trained unless it is kept; ``kind`` names its parameters."""
    import longleaf as ll  # not where a process only measures a peer

    path = CACHE / f"{name}-{kind}-{seed}.ll"
    if not path.exists():
        ll.PLT(random_state=seed, **params).fit(*load(prepare(name), "train")).save(path)
    return ll.load(path)
