"""``python -m benchmarks.sets``: sets of labels with a promise, against as many labels for every row.

Trains the default on the shared data sets (kept in ``build/bench-data``), splits the dev rows into halves
many times, fits the sets on one half and judges them on the other. Writes ``benchmarks/results/sets.json``
and draws ``docs/figures/sets.png``. One search serves all splits; the cost of asking is measured by itself,
on one thread.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from benchmarks.data import NAMES, RESULTS, ROOT, load, prepare, trained
from benchmarks.measure import best_of
from longleaf._validation import carries
from longleaf.conformal import MAX_SIZE, RiskControl, expected_recall, fit_risk
from longleaf.search.auto_k import best_labels
from longleaf.search.top_k import TopK

FIGURE = ROOT / "docs" / "figures" / "sets.png"
COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9)
COLOURS = dict(zip(NAMES, ("tab:blue", "tab:green"), strict=True))
TITLES = {"eurlex57k": "EURLEX57K", "tib-sid": "TIB-SID"}
DRAWN = ("fixed recall", "curve")
Doubles = npt.NDArray[np.float64]


def hit_shares(top: TopK, Y: sp.csr_array) -> Doubles:
    """Return what each returned label adds to the recall of its row, [rows, k]."""
    shares = np.zeros(top.labels.shape)
    row, place = np.nonzero(top.labels >= 0)
    shares[row, place] = carries(Y, row, top.labels[row, place])
    return np.asarray(shares / np.diff(Y.indptr)[:, None])


def one_split(
    top: TopK, Y: sp.csr_array, shares: Doubles, chosen: npt.NDArray[Any], rest: npt.NDArray[Any]
) -> list[dict[str, Any]]:
    """Fit on some rows; judge the sets of each coverage on the others, and as many labels for each."""
    control = fit_risk(top.take(chosen), Y[chosen], MAX_SIZE)
    by_size = shares[rest].cumsum(axis=1)
    fixed = np.append(0.0, by_size.mean(axis=0))
    n_labels = np.diff(Y.indptr)[rest]
    found = []
    for coverage in COVERAGES:
        if coverage > control.most:
            continue
        inside = expected_recall(top.take(rest)) >= np.float32(control.threshold(coverage))
        size, recall = inside.sum(axis=1), (shares[rest] * inside).sum(axis=1)
        record = {"coverage": coverage, "recall": recall.mean(), "size": size.mean()}
        record |= {"median": np.median(size), "p10": np.quantile(size, 0.1), "p90": np.quantile(size, 0.9)}
        # as many labels for each row, with a fraction between two whole numbers
        record["fixed"] = np.interp(recall.mean(), fixed, np.arange(len(fixed)))
        record["by probability"] = size_for(recall.mean(), top.probabilities[rest], shares[rest])
        record["few"], record["many"] = recall[n_labels <= 2].mean(), recall[n_labels > 5].mean()
        found.append({name: float(value) for name, value in record.items()})
    return found


def size_for(recall: float, value: npt.NDArray[Any], shares: Doubles) -> float:
    """Return the mean size of the sets of all labels down to a value, whose mean recall is this."""
    order = np.argsort(-value, axis=None, kind="stable")
    return float(np.searchsorted(shares.ravel()[order].cumsum(), recall * len(shares)) + 1) / len(shares)


def curve(value: npt.NDArray[Any], shares: Doubles) -> list[tuple[float, float]]:
    """Return mean size and mean recall of the sets of all labels down to a value, for 60 values."""
    order = np.argsort(-value, axis=None, kind="stable")
    recall = shares.ravel()[order].cumsum() / len(shares)
    ends = np.geomspace(0.5, 0.98 * value.shape[1], 60) * len(shares)
    return [(float(end / len(shares)), float(recall[int(end)])) for end in ends]


def study(data: str, seed: int, splits: int) -> dict[str, Any]:
    """Judge sets and fixed numbers of labels over many splits of the dev rows; measure what asking costs."""
    model = trained(data, seed)
    X, truth = load(prepare(data), "dev")
    kept = np.diff(truth.indptr) > 0
    X, Y = X[kept], sp.csr_array(truth[kept])
    top = model.top_k(X, MAX_SIZE)
    shares, random = hit_shares(top, Y), np.random.default_rng(seed)
    results: list[dict[str, Any]] = []
    for _ in range(splits):
        order = random.permutation(len(shares))
        results += one_split(top, Y, shares, order[::2], order[1::2])
    record: dict[str, Any] = {"data": data, "seed": seed, "splits": splits, "rows": len(shares)}
    control: RiskControl = model.fit_sets(X, Y).risk_control_
    record["most"] = control.most
    record["most, larger sets"] = fit_risk(model.top_k(X, 10 * MAX_SIZE), Y, 10 * MAX_SIZE).most
    record["sets"] = [_summary(coverage, results) for coverage in COVERAGES]
    record["fixed recall"] = np.append(0.0, shares.cumsum(axis=1).mean(axis=0)).tolist()
    record["curve"] = curve(expected_recall(top), shares)
    likely = best_labels(top.probabilities[:, :60])
    record["auto"] = {
        "recall": float((shares[:, :60] * likely).sum(axis=1).mean()),
        "size": float(likely.sum(axis=1).mean()),
    }
    record["cost"] = costs(model, X[:3000])
    return record


def _summary(coverage: float, results: list[dict[str, Any]]) -> dict[str, Any]:
    own = [one for one in results if one["coverage"] == coverage]
    if not own:
        return {"coverage": coverage}
    mean = {name: float(np.mean([one[name] for one in own])) for name in own[0]}
    recall = [one["recall"] for one in own]
    mean["coverage"] = coverage
    return mean | {"low": float(np.quantile(recall, 0.05)), "high": float(np.quantile(recall, 0.95))}


def costs(model: Any, X: Any) -> dict[str, float]:
    """Return the CPU milliseconds per row of sets and of five labels, on a thread."""
    calls = {"top_k(k=5)": partial(model.top_k, X, 5, n_jobs=1)}
    calls["top_k(k=100)"] = partial(model.top_k, X, 100, n_jobs=1)
    for coverage in COVERAGES:
        if coverage <= model.risk_control_.largest:
            calls[f"predict_set({coverage:g})"] = partial(model.predict_set, X, coverage, n_jobs=1)
    return {name: 1000 * best_of(call, 3)[1].cpu_seconds / X.shape[0] for name, call in calls.items()}


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Draw recall against coverage, and mean size against recall beside fixed numbers of labels."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
    left.plot([0.45, 0.95], [0.45, 0.95], color="tab:gray", linewidth=1, label="what is promised")
    for record in records:
        name, colour = TITLES[record["data"]], COLOURS[record["data"]]
        sets = [one for one in record["sets"] if "recall" in one]
        coverage, recall = ([one[key] for one in sets] for key in ("coverage", "recall"))
        off = [[one["recall"] - one["low"] for one in sets], [one["high"] - one["recall"] for one in sets]]
        left.errorbar(coverage, recall, off, fmt="o", color=colour, markersize=4, capsize=3, label=name)
        right.plot(*zip(*record["curve"], strict=True), color=colour, label=f"{name}, sets")
        right.plot([one["size"] for one in sets], recall, "o", color=colour, markersize=4)
        fixed = record["fixed recall"]
        right.plot(range(1, len(fixed)), fixed[1:], "--", color=colour, label=f"{name}, same number for all")
        right.plot(record["auto"]["size"], record["auto"]["recall"], "*", color=colour, markersize=10)
    right.plot([], [], "*", color="black", markersize=10, label="as many as are likely (auto)")
    left.set(xlabel="coverage asked for", ylabel="mean recall")
    right.set(xlabel="labels per row, mean", ylabel="mean recall", xscale="log")
    right.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
    right.minorticks_off()
    for panel in (left, right):
        panel.grid(alpha=0.3)
        panel.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--out", type=Path, default=RESULTS / "sets.json")
    options = parser.parse_args()
    records = [study(data, options.seed, options.splits) for data in NAMES]
    options.out.write_text(json.dumps(records, indent=1) + "\n")
    for record in records:
        print(json.dumps({name: value for name, value in record.items() if name not in DRAWN}, indent=1))
    draw(records, FIGURE)


if __name__ == "__main__":
    main()
