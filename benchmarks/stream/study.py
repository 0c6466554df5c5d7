"""A stream of rows in file order: a model that goes on learning, against training anew at every step.

    python -m benchmarks.stream -o benchmarks/results/stream.json

The first half of TIB-SID's train set is learned by `fit`; then come batches for `partial_fit`. After each,
the model is judged on dev, and so is one that was trained from nothing on all rows so far. Propensities of
the metric are those of all rows so far; labels that none of them has still count in the denominators.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import longleaf as ll
from benchmarks.data import load, prepare
from benchmarks.measure import measure
from longleaf.propensity import inverse_propensity_from_counts

K = (1, 3, 5)
KEPT = ("p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5")
DIALS = {"plain": None, "tail=1": 1.0}


def judge(
    model: ll.PLT, X: sp.csr_matrix, Y: sp.csr_matrix, seen: sp.csr_matrix
) -> dict[str, dict[str, float]]:
    """Give p@k and psp@k by dial."""
    counts = np.bincount(seen.indices, minlength=Y.shape[1])
    worth = inverse_propensity_from_counts(counts, seen.shape[0], 0.55, 1.5)
    results = {}
    for name, tail in DIALS.items():
        found = ll.metrics.evaluate(Y, model.top_k(X, max(K), tail=tail), inverse_propensity=worth, k=K)
        results[name] = {key: found[key] for key in KEPT}
    return results


def cuts(n_rows: int, batches: int) -> list[int]:
    """Give where the first half and every batch end."""
    return [int(cut) for cut in np.linspace(n_rows // 2, n_rows, batches + 1)]


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Learn the stream; give what was measured after every batch, written as it goes."""
    folder = prepare(args.data)
    X, Y = (part[: args.rows] for part in load(folder, "train"))
    dev = load(folder, "dev")
    ends = cuts(X.shape[0], args.batches)
    settings = {"n_trees": args.trees, "random_state": 1, "n_jobs": args.threads}
    model, cost = measure(lambda: ll.PLT(**settings).fit(X[: ends[0]], Y[: ends[0]]))
    first = {"rows": ends[0], "cpu_seconds": cost.cpu_seconds, **judge(model, *dev, Y[: ends[0]])}
    result: dict[str, Any] = {"data": args.data, "settings": settings, "first": first, "steps": []}
    for begin, end in pairwise(ends):
        _, cost = measure(partial(model.partial_fit, X[begin:end], Y[begin:end]))
        new = int((np.diff(Y[:end].tocsc().indptr) > 0).sum())
        step: dict[str, Any] = {"rows": end, "labels": new}
        step["update"] = {"cpu_seconds": cost.cpu_seconds, **judge(model, *dev, Y[:end])}
        if not args.no_retraining:
            anew, cost = measure(partial(ll.PLT(**settings).fit, X[:end], Y[:end]))
            step["anew"] = {"cpu_seconds": cost.cpu_seconds, **judge(anew, *dev, Y[:end])}
        result["steps"].append(step)
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    return result


def table(result: dict[str, Any]) -> str:
    """Give the result as a Markdown table."""
    lines = [
        "| rows | labels | CPU s | p@1 / 3 / 5 | psp@1 / 3 / 5, `tail=1` |",
        "| --- | --- | --- | --- | --- |",
    ]
    for step in result["steps"]:
        pairs = [step[kind] for kind in ("update", "anew") if kind in step]
        cells = [" → ".join(f"{one['cpu_seconds']:.1f}" for one in pairs)]
        for dial, metric in (("plain", "p"), ("tail=1", "psp")):
            cells.append(
                " → ".join(" / ".join(f"{one[dial][f'{metric}@{k}']:.2f}" for k in K) for one in pairs)
            )
        lines.append(f"| {step['rows']:,} | {step['labels']:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark, or show what one has found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--out", type=Path, default=Path("benchmarks/results/stream.json"))
    parser.add_argument("--data", default="tib-sid")
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--rows", type=int, help="Only the first rows of train.")
    parser.add_argument("--trees", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-retraining", action="store_true", help="Leave out training anew.")
    parser.add_argument("--show", action="store_true", help="Show what is there, as Markdown.")
    args = parser.parse_args()
    print(table(json.loads(args.out.read_text()) if args.show else run(args)))
