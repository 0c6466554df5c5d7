"""Train tiny models with omikuji, PECOS and napkinXC, and note what they themselves predict.

Run by the peers' own Python, which has no longleaf; `make peers` builds the environments:

    .venv-peers/bin/python tests/importing/peers/make.py tests/importing/peers/models omikuji napkinxc
    .venv-pecos/bin/python tests/importing/peers/make.py tests/importing/peers/models pecos

A model's folder gets `expected.json`: its kind, and per search the beam (0 for exact), k, labels and scores.
The data are drawn by NumPy's frozen generator, so `draw` gives the tests the same rows.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

ROWS, ASKED, FEATURES, LABELS, UNSEEN = 120, 20, 40, 14, 7
EXACT = 0


def draw(seed=1, features=FEATURES):
    """Give training rows, their labels, and rows to ask about; label 7 never occurs, one row has no label."""
    random = np.random.RandomState(seed)
    words = (random.rand(LABELS, features) < 6 / features).astype(np.float32)
    n_rows = ROWS + ASKED
    Y = np.zeros((n_rows, LABELS), np.float32)
    for row in range(n_rows):
        Y[row, random.choice(LABELS, random.randint(1, 4), replace=False)] = 1
    Y[:, UNSEEN] = 0
    noise = (random.rand(n_rows, features) < 4 / features) * random.rand(n_rows, features)
    X = (Y @ words * (0.5 + random.rand(n_rows, features)) + noise).round(3).astype(np.float32)
    X[:, 0] += 0.25  # no row is empty
    Y[5] = 0
    return sp.csr_matrix(X[:ROWS]), sp.csr_matrix(Y[:ROWS]), sp.csr_matrix(X[ROWS:])


def write_xmlc(path, X, Y):
    """Write the training file that omikuji reads; longleaf's own writer is not there."""
    lines = [f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}"]
    for x, y in zip(X, Y, strict=True):
        features = " ".join(f"{i}:{v:.6g}" for i, v in zip(x.indices, x.data, strict=True))
        lines.append(f"{','.join(map(str, y.indices))} {features}")
    path.write_text("\n".join(lines) + "\n")


def omikuji_models(folder, seed):
    """A forest by squared hinge; one tree by log loss with sparse weights, its leaves at one depth."""
    import omikuji

    settings = {
        "omikuji-hinge": (FEATURES, {"n_trees": 2, "min_branch_size": 4}, (50,)),
        "omikuji-log": (200, {"n_trees": 1, "min_branch_size": 5, "linear_loss_type": 1}, (50, 3)),
    }
    for name, (features, changes, beams) in settings.items():
        X, Y, asked = draw(seed, features)
        hyper_param = omikuji.Model.default_hyper_param()
        for key, value in changes.items():
            setattr(hyper_param, key, value)
        file = folder / f"{name}.txt"
        write_xmlc(file, X, Y)
        model = omikuji.Model.train_on_data(str(file), hyper_param, 1)
        file.unlink()
        model.save(str(folder / name))
        rows = [list(zip(x.indices.tolist(), x.data.tolist(), strict=True)) for x in asked]
        searches = []
        for beam in beams:
            k = min(beam, 5)
            searches.append((beam, k, [model.predict(row, beam_size=beam, top_k=k) for row in rows]))
        note(folder / name, "omikuji", seed, features, searches)


def pecos_models(folder, seed):
    """A chain of three levels, and a flat model without bias by the logistic function."""
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    X, Y, asked = draw(seed)
    embedding = LabelEmbeddingFactory.create(Y, X, method="pifa")
    chain = Indexer.gen(embedding, indexer_type="hierarchicalkmeans", nr_splits=2, max_leaf_size=3, seed=seed)
    settings = {
        "pecos-hinge": (chain, {"bias": 1.0, "nr_splits": 2}, "l3-hinge", (50, 2)),
        "pecos-sigmoid": (None, {"bias": -1.0, "solver_type": "L2R_L2LOSS_SVC_DUAL"}, "sigmoid", (50,)),
    }
    for name, (clusters, changes, post_processor, beams) in settings.items():
        pred = {"post_processor": post_processor}
        model = XLinearModel.train(X, Y, C=clusters, threshold=0.05, pred_kwargs=pred, **changes)
        model.save(str(folder / name))
        searches = []
        for beam in beams:
            k = min(beam, 5)
            found = model.predict(asked, beam_size=beam, only_topk=k)
            searches.append((beam, k, [by_score(row) for row in found]))
        note(folder / name, "pecos", seed, FEATURES, searches)


def by_score(row):
    """Give the labels of a row of a matrix with their scores, best first."""
    pairs = zip(row.indices.tolist(), row.data.tolist(), strict=True)
    return sorted(pairs, key=lambda pair: -pair[1])


def napkinxc_models(folder, seed):
    """One tree by log loss, an ensemble by squared hinge, and a tree on rows as they are."""
    from napkinxc.models import PLT

    X, Y, asked = draw(seed)
    settings = {
        "napkinxc-log": {"max_leaves": 3},
        "napkinxc-hinge": {
            "max_leaves": 3,
            "loss": "l2",
            "ensemble": 2,
            "bias": 0.5,
            "weights_threshold": 0.3,
        },
        "napkinxc-raw": {"norm": False, "bias": 0.0, "tree_type": "completeKaryInOrder", "arity": 4},
    }
    for name, changes in settings.items():
        model = PLT(str(folder / name), seed=seed, threads=1, **changes)
        model.fit(X, Y)
        searches = [(EXACT, k, model.predict_proba(asked, top_k=k)) for k in (LABELS, 2)]
        note(folder / name, "napkinxc", seed, FEATURES, searches)
        for text in (folder / name).rglob("tree.txt"):
            text.unlink()  # the tree once more, for people


def note(folder, kind, seed, features, searches):
    """Write what a model predicted."""
    found = [
        {
            "beam": beam,
            "k": k,
            "labels": [[label for label, _ in row] for row in rows],
            "scores": [[float(f"{score:.8g}") for _, score in row] for row in rows],
        }
        for beam, k, rows in searches
    ]
    expected = {"kind": kind, "seed": seed, "features": features, "searches": found}
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


TRAINERS = {"omikuji": omikuji_models, "pecos": pecos_models, "napkinxc": napkinxc_models}


def main(folder, *kinds, seed=1):
    """Replace the models of the kinds."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        for old in folder.glob(f"{kind}-*"):
            shutil.rmtree(old)
        TRAINERS[kind](folder, seed)


if __name__ == "__main__":
    words = sys.argv[1:]
    main(
        *[word for word in words if not word.isdigit()], seed=int(next((w for w in words if w.isdigit()), 1))
    )
