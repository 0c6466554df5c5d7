"""Models of omikuji (0.5): ``settings.json``, and ``tree0.cbor`` and so on, each a tree of nested maps.

A tree is ``{"Branch": {"weights", "children"}}`` or ``{"Leaf": {"weights", "labels"}}``; the weights are
those of the children or labels, a matrix with a row per feature, one more for the bias, a column per child:

    {"Dense": {"v", "dim": [features + 1, children], "data"}}, row by row, or
    {"Sparse": {"outer_dim": features + 1, "inner_dim": children, "indptr", "outer_inds", "inner_inds",
                "data"}}, where "outer_inds" lists the stored rows.

Rows are scaled to unit length and get a bias of 1; a margin m becomes ``1 / (1 + exp(-m))`` ("Log") or
``exp(-max(0, 1 - m)**2)`` ("Hinge"); probabilities multiply along the path, and trees are averaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import ModelError
from longleaf.importing._assemble import Source, SourceTree, no_weights
from longleaf.importing._files import read_json, setting

LINKS = {"Log": 0, "Hinge": 2}
MOST_FEATURES = 2**31 - 2
ARRAYS = {"indptr": np.int64, "outer_inds": np.int64, "inner_inds": np.int64, "data": np.float32}


def is_omikuji(folder: Path) -> bool:
    """Return whether a folder has the files of a model of omikuji."""
    return (folder / "settings.json").is_file() and any(folder.glob("tree*.cbor"))


def read_omikuji(folder: Path) -> Source:
    """Read a model of omikuji."""
    path = folder / "settings.json"
    settings = read_json(path)
    n_features = setting(settings, "n_features", int, path)
    loss = setting(settings, "classifier_loss_type", str, path)
    if loss not in LINKS or not 0 < n_features <= MOST_FEATURES:
        raise ModelError(f"{path} is damaged: it has {n_features} features and the loss {loss!r}.")
    files = sorted(folder.glob("tree*.cbor"), key=lambda file: (len(file.name), file.name))
    if not files:
        raise ModelError(f"{folder} must have files tree0.cbor and so on; got none.")
    trees = [_read_tree(file, n_features) for file in files]
    n_labels = 1 + max(int(tree.label.max()) for tree in trees)
    return Source("omikuji", trees, LINKS[loss], n_features, n_labels, normalize=True, bias=1.0)


def _read_tree(path: Path, n_features: int) -> SourceTree:
    try:
        return _TreeReader(path, n_features).read(_decode(path))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path} is damaged, or not of omikuji 0.5: {error}.") from None


def _decode(path: Path) -> Any:
    try:
        import cbor2
    except ImportError:
        raise ModelError("Models of omikuji need cbor2 to be read: pip install 'longleaf[import]'.") from None
    try:
        with path.open("rb") as file:
            return cbor2.load(file, object_hook=_as_arrays)
    except (cbor2.CBORError, RecursionError, MemoryError) as error:
        raise ModelError(f"{path} is damaged: it must be CBOR; {error}.") from None


def _as_arrays(entries: Mapping[Any, Any], _immutable: bool) -> dict[Any, Any]:
    """Convert lists of numbers to arrays as soon as each is read: lists take eight times the memory."""
    return {
        name: np.array(value, ARRAYS[name]) if name in ARRAYS else value for name, value in entries.items()
    }


class _TreeReader:
    """Collects the nodes of a decoded tree; the children of a node are consecutive."""

    def __init__(self, path: Path, n_features: int) -> None:
        self.path, self.n_features = path, n_features
        self.parent, self.label = [-1], [-1]
        self.weights: list[sp.csr_array] = [no_weights(n_features + 1)]

    def read(self, root: Any) -> SourceTree:
        waiting = [(0, root)]
        for node, branch in waiting:  # grows during the loop
            first = len(self.parent)
            if "Leaf" in branch:
                labels = [int(label) for label in branch["Leaf"]["labels"]]
                self._add_family(node, labels, branch["Leaf"]["weights"])
            else:
                children = branch["Branch"]["children"]
                self._add_family(node, [-1] * len(children), branch["Branch"]["weights"])
                waiting += [(first + place, child) for place, child in enumerate(children)]
        weights = sp.csr_array(sp.vstack(self.weights, format="csr"))
        bias = weights[:, [self.n_features]].toarray()[:, 0]
        return SourceTree(
            str(self.path), np.array(self.parent), np.array(self.label), weights[:, : self.n_features], bias
        )

    def _add_family(self, node: int, labels: list[int], weights: dict[str, Any]) -> None:
        self.parent += [node] * len(labels)
        self.label += labels
        shape = (self.n_features + 1, len(labels))
        matrix = _dense(weights["Dense"], shape) if "Dense" in weights else _sparse(weights["Sparse"], shape)
        self.weights.append(matrix)


def _dense(stored: dict[str, Any], shape: tuple[int, int]) -> sp.csr_array:
    data: npt.NDArray[np.float32] = stored["data"]
    if tuple(stored["dim"]) != shape or data.shape != (shape[0] * shape[1],):
        raise ValueError(f"weights must be {shape}; got {stored['dim']} and {len(data)} numbers")
    return sp.csr_array(data.reshape(shape).T)


def _sparse(stored: dict[str, Any], shape: tuple[int, int]) -> sp.csr_array:
    indptr, feature, child, data = (stored[name] for name in ARRAYS)
    if (stored["outer_dim"], stored["inner_dim"]) != shape:
        raise ValueError(f"weights must be {shape}; got {stored['outer_dim']} and {stored['inner_dim']}")
    counts = np.diff(indptr)
    whole = len(indptr) == len(feature) + 1 and indptr[0] == 0 and (counts >= 0).all()
    if not whole or indptr[-1] != len(data) or len(child) != len(data):
        raise ValueError("indptr must rise from 0 to the number of weights")
    if len(data) and not (_inside(feature, shape[0]) and _inside(child, shape[1])):
        raise ValueError("weights must name existing features and children")
    return sp.csr_array(sp.coo_array((data, (child, np.repeat(feature, counts))), shape=shape[::-1]))


def _inside(numbers: npt.NDArray[np.int64], end: int) -> bool:
    return bool(numbers.min() >= 0 and numbers.max() < end)
