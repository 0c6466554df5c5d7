"""``python -m benchmarks.refined.calibrate``: what `calibrate` does to a model of trees alone.

Trains ``PLT(refine=False)`` on four data sets, calibrates it on one half of the rows that were kept from
training, and measures quality and the cost of searches on the other half, before and after. Writes
``benchmarks/results/calibrate.json``.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import longleaf as ll
from benchmarks.data import NAMES, RESULTS, load, prepare, source_folder
from benchmarks.measure import best_of, least_mean
from benchmarks.refined.__main__ import KEPT, TAILS, K

OTHERS = ("bibtex", "delicious")
RUNS, SINGLE_ROWS = 5, 300


def sets(name: str) -> tuple[Any, Any]:
    """Return the training rows, and those kept from training."""
    if name in OTHERS:
        train, test = (
            ll.load_xmlc(source_folder() / name / f"{name}_{split}.txt") for split in ("train", "test")
        )
        return train, test
    folder = prepare(name)
    return load(folder, "train"), load(folder, "dev")


def judge(model: ll.PLT, X: Any, Y: Any, worth: Any) -> dict[str, Any]:
    """Return the quality and the cost of the best five labels, for each tail; one thread."""
    found: dict[str, Any] = {}
    rows = [X[i] for i in range(SINGLE_ROWS)]
    for tail in TAILS:
        search = partial(model.top_k, k=max(K), tail=tail, n_jobs=1)
        top, cost = best_of(partial(search, X), RUNS)
        single = least_mean(search, rows, RUNS)
        quality = ll.metrics.evaluate(Y, top, inverse_propensity=worth, k=K)
        found[f"tail {tail:g}"] = {
            **{key: quality[key] for key in KEPT},
            "ece@5": ll.metrics.calibration(Y, top, k=5).ece,
            "cpu_ms": 1000 * cost.cpu_seconds / X.shape[0],
            "cpu_ms_single": 1000 * single.cpu_seconds,
            "evaluations": float(top.evaluations.mean()),
        }
    return found


def run(data: str, seed: int) -> dict[str, Any]:
    """Train, judge, calibrate and judge again."""
    (X, Y), (X_kept, Y_kept) = sets(data)
    order = np.random.default_rng(1).permutation(X_kept.shape[0])
    held_out, test = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    worth = ll.inverse_propensity(Y)
    model = ll.PLT(refine=False, random_state=seed).fit(X, Y)
    before = judge(model, X_kept[test], Y_kept[test], worth)
    _, cost = best_of(lambda: model.calibrate(X_kept[held_out], Y_kept[held_out]), 1)
    after = judge(model, X_kept[test], Y_kept[test], worth)
    return {
        "data": data,
        "seed": seed,
        "rows": len(held_out),
        "calibrate_cpu": cost.cpu_seconds,
        "before": before,
        "after": after,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS / "calibrate.json")
    options = parser.parse_args()
    records = []
    for data in (*OTHERS, *NAMES):
        records.append(run(data, options.seed))
        print(json.dumps(records[-1]), flush=True)
        options.out.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
