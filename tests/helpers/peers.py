"""The peers' models under tests/importing/peers, and what they themselves predicted."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import longleaf as ll
from tests.importing.peers import make

MODELS = Path(make.__file__).parent / "models"
NAMES = sorted(folder.name for folder in MODELS.iterdir())
RTOL, ATOL = 1e-5, 1e-6
"""How far scores may be off: 32-bit products, added up in another order."""


@dataclass(frozen=True)
class Search:
    """What a peer answered: [rows, k] labels and scores, padded with -1 and 0; beam 0 is exact."""

    beam: int
    ensemble: str
    labels: np.ndarray
    scores: np.ndarray

    @property
    def options(self):
        common = {"k": self.labels.shape[1], "ensemble": self.ensemble}
        return common | ({"search": "beam", "beam": self.beam} if self.beam else {"search": "exact"})


@dataclass(frozen=True)
class Peer:
    """A folder that a peer saved, the rows that it was asked about, and its answers."""

    folder: Path
    kind: str
    train: tuple
    X: object
    searches: list

    @classmethod
    def read(cls, folder):
        noted = json.loads((folder / "expected.json").read_text())
        if noted["kind"] == "omikuji":
            pytest.importorskip("cbor2", reason="omikuji's trees are read with cbor2 (extra import)")
        X, Y, asked = make.draw(noted["seed"], noted["features"])
        return cls(
            folder, noted["kind"], (X, Y), asked, [_search(one, noted["kind"]) for one in noted["searches"]]
        )

    def load(self, **options):
        return ll.import_model(self.folder, n_features=self.X.shape[1], **options)

    def counts(self):
        Y = self.train[1]
        return {"label_counts": np.bincount(Y.indices, minlength=Y.shape[1]), "n_rows": Y.shape[0]}


def _search(noted, kind):
    labels = np.full((len(noted["labels"]), noted["k"]), -1)
    scores = np.zeros(labels.shape)
    for row, (names, values) in enumerate(zip(noted["labels"], noted["scores"], strict=True)):
        labels[row, : len(names)], scores[row, : len(names)] = names, values
    ensemble = "union" if kind == "napkinxc" else "mean"  # napkinXC looks at the union of each tree's top k
    return Search(noted["beam"], ensemble, labels, scores)


def assert_reproduced(peer):
    """Compare a peer's answers with longleaf's place by place, labels where no other scores the same."""
    model = peer.load()
    for search in peer.searches:
        top = model.top_k(peer.X, **search.options)
        np.testing.assert_allclose(top.scores, search.scores, RTOL, ATOL)
        found = search.labels >= 0
        rows = np.nonzero(found)[0]
        np.testing.assert_allclose(
            model.probability(peer.X, rows, search.labels[found]), search.scores[found], RTOL, ATOL
        )
        gap = np.diff(search.scores, axis=1, prepend=2.0, append=-1.0) < -1e-5
        alone = gap[:, :-1] & gap[:, 1:] & found
        alone[:, -1] = False  # the next one may score the same
        assert alone.sum() > alone.size / 10
        np.testing.assert_array_equal(top.labels[alone], search.labels[alone])
