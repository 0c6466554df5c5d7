"""How long EURLEX57K's 45,000 laws take, in longleaf's vectorizer and in scikit-learn's.

Usage: python -m benchmarks.speed.vectorize [--data DIR] [--repeat 3] [--threads 2]
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.data import source_folder
from longleaf.text.vectorizer import TextVectorizer

DATA = source_folder()
SETTINGS = {"words": {"ngram_range": (1, 1)}, "words and pairs": {"ngram_range": (1, 2)}}


def read_laws(path: Path) -> list[str]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [f"{law['title']} {law['text']}" for law in map(json.loads, lines)]


def best_of(repeat: int, run: Callable[[], csr_matrix]) -> tuple[float, csr_matrix]:
    times = []
    for _ in range(repeat - 1):
        start = time.perf_counter()
        run()  # the last one goes before the next comes
        times.append(time.perf_counter() - start)
    start = time.perf_counter()
    matrix = run()
    return min([*times, time.perf_counter() - start]), matrix


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    texts = read_laws(arguments.data / "eurlex57k" / "train.jsonl.xz")
    print(
        f"{len(texts)} texts, {sum(map(len, texts)) / 1e6:.0f} million characters, best of {arguments.repeat}"
    )
    for name, setting in SETTINGS.items():
        common: dict[str, Any] = {"sublinear_tf": True, **setting}
        ours = TextVectorizer(n_jobs=arguments.threads, **common)
        peer = TfidfVectorizer(dtype=np.float32, **common)
        fast, matrix = best_of(arguments.repeat, partial(ours.fit_transform, texts))
        again, _ = best_of(arguments.repeat, partial(ours.transform, texts))
        slow, expected = best_of(arguments.repeat, partial(peer.fit_transform, texts))
        difference = abs(matrix - expected).max() if matrix.shape == expected.shape else float("nan")
        print(
            f"{name}: {matrix.shape[1]} terms, {matrix.nnz} entries; longleaf {fast:.2f} s"
            f" (transform {again:.2f} s), scikit-learn {slow:.2f} s, ratio {slow / fast:.1f};"
            f" largest difference {difference:.1e}"
        )


if __name__ == "__main__":
    main()
