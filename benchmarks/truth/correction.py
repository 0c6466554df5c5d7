"""Correcting missing labels in training, in prediction, or both: ``python -m benchmarks.truth.correction``.

Each cell (data set, way of training) is trained once with a seed and asked with tail 0 and 1; the results are
kept, so that a run can be stopped and goes on later. ``truth`` is data whose complete labels are known;
``clipping`` says how often and by how much the estimates of inner nodes are clipped.
"""

import argparse
import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

import longleaf as ll
from benchmarks import data
from benchmarks.paper import sets
from benchmarks.truth import runs
from longleaf.training.positive_weight import relevance_estimates
from longleaf.training.solver import node_rows

RESULTS = data.ROOT / "benchmarks" / "results" / "correction.json"
SETS = ("Bibtex", "Delicious", "EURLEX57K")
SEED = 1
TRUTH_SEEDS = (1, 2, 3, 4, 5)
TRUTH_COSTS = (1.0, 4.0, 16.0)
PLACES = (1, 3, 5)
TAILS = (0.0, 1.0)
WEIGHTS: tuple[float | str, ...] = (1.0, "propensity", "inverse-prior")
Judged = dict[str, dict[str, float]]

WAYS: dict[str, Callable[[], Any]] = {
    **{f"PLT, {weight}": partial(ll.PLT, positive_weight=weight) for weight in WEIGHTS},
    **{f"PLT.paper, {weight}": partial(ll.PLT.paper, positive_weight=weight) for weight in WEIGHTS},
    "DiSMEC": ll.BR.dismec,
    "PW-DiSMEC": ll.BR.pw_dismec,
    "PW-DiSMEC-cb": lambda: ll.BR.pw_dismec(class_balanced=True),
}


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", nargs="*", choices=(*SETS, "truth", "clipping"), default=(*SETS, "truth", "clipping")
    )
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="only print what is there, as Markdown")
    options = parser.parse_args()
    results = json.loads(options.results.read_text()) if options.results.exists() else {}
    if options.table:
        return print("\n".join(table_lines(results)))

    def keep(name: str, way: str, measure: Callable[[], Any]) -> None:
        if way not in results.setdefault(name, {}):
            results[name][way] = measure()
            options.results.write_text(json.dumps(results, indent=1) + "\n")
            print(name, way, json.dumps(results[name][way]), flush=True)

    for name in options.data:
        if name == "truth":
            for weight in WEIGHTS:
                for cost in TRUTH_COSTS:
                    keep(name, f"{weight}, C={cost:g}", partial(judge_by_truth, weight, cost))
        elif name == "clipping":
            keep(name, "truth", clipping_bias)
            for known in ("Bibtex", "EURLEX57K"):
                keep(name, known, partial(clipping_of, known))
        else:
            for way in options.ways:
                keep(name, way, partial(judge, name, way))


def table_lines(results: dict[str, Any]) -> list[str]:
    """Give the cells of the data sets as a Markdown table: asked without gains, then with them."""
    shown = [f"{metric}@{k}" for metric in ("p", "psp") for k in (1, 5)]
    head = ["data", "trained", *shown, *(f"{metric}, tail=1" for metric in shown)]
    lines = [f"| {' | '.join(head)} |", "| --- | --- |" + " ---: |" * (2 * len(shown))]
    for name in SETS:
        for way, found in results.get(name, {}).items():
            numbers = [f"{found[f'tail {tail:g}'][metric]:.1f}" for tail in TAILS for metric in shown]
            lines.append(f"| {name} | {way} | {' | '.join(numbers)} |")
    return lines


def load(name: str) -> tuple[sp.csr_matrix, sp.csr_matrix, sp.csr_matrix, sp.csr_matrix]:
    """Give features and labels of training, then of what judges."""
    folder = sets.prepare(sets.SETS[name], data.source_folder())
    return *data.load(folder, "train"), *data.load(folder, "dev")


def judge(name: str, way: str) -> Judged:
    """Train one way and judge it with and without gains."""
    X, Y, X_test, Y_test = load(name)
    model = WAYS[way]().set_params(random_state=SEED).fit(X, Y)
    worth = ll.inverse_propensity(Y)
    found = {}
    for tail in TAILS:
        top = model.top_k(X_test, k=max(PLACES), tail=tail)
        scores = ll.metrics.evaluate(Y_test, top, worth, k=PLACES)
        found[f"tail {tail:g}"] = {
            f"{metric}@{k}": round(scores[f"{metric}@{k}"], 2) for metric in ("p", "psp") for k in PLACES
        }
    return found


@cache
def truth_case(seed: int, law: tuple[float, float]) -> runs.Case:
    """Make the data of docs/experiments/2026-11-theory-on-known-truth.md, section 2, once."""
    return runs.make_case(seed, law=law, **runs.LEARNABLE)


def judge_by_truth(weight: float | str, cost: float) -> dict[str, list[float]]:
    """Train on noted labels and give p@1, p@3 and p@5 on the complete ones, mean over the seeds."""
    found: dict[str, list[npt.NDArray[np.float64]]] = {}
    for seed in TRUTH_SEEDS:
        case = truth_case(seed, runs.STEEP_LAW)
        model = runs.train(case, case.noted, C=cost, positive_weight=weight, propensity=runs.STEEP_LAW)
        for tail in TAILS:
            found.setdefault(f"tail {tail:g}", []).append(runs.complete_precision(case, model, tail=tail))
    return {name: np.mean(values, axis=0).round(2).tolist() for name, values in found.items()}


def clipping_of(name: str) -> dict[str, dict[str, float]]:
    """Describe the clipping at the inner nodes of the paper's trees and of the default ones."""
    X, Y, *_ = load(name)
    found = {}
    ways: dict[str, dict[str, Any]] = {"paper": {"arity": 2, "max_leaf": 100}, "default": {}}
    for trees, settings in ways.items():
        tree = (
            ll.PLT(n_trees=1, refine=False, random_state=SEED, max_epochs=1, tolerance=1.0, **settings)
            .fit(X, Y)
            .trees_[0]
        )
        if (tree.label[1:] < 0).any():
            found[trees] = describe_clipping(tree, sp.csr_array(Y), ll.inverse_propensity(Y))
    return found


def describe_clipping(tree: ll.LabelTree, Y: sp.csr_array, worth: Any) -> dict[str, float]:
    """Give, over the entries of inner nodes, shares in percent and means."""
    inner = inner_entries(tree, Y)
    raw, most = (values[inner] for values in relevance_estimates(tree, Y, worth))
    clipped = np.clip(raw, 1, most)
    low, high = raw < 1, raw > most * (1 + 1e-9)
    found = {
        "entries": len(raw),
        "raised to 1, %": 100 * low.mean(),
        "lowered to the highest 1/p, %": 100 * high.mean(),
        "estimate where raised, median": np.median(raw[low]) if low.any() else 0,
        "times too high where lowered, median": np.median((raw / most)[high]) if high.any() else 0,
        "mean estimate": raw.mean(),
        "mean clipped": clipped.mean(),
    }
    return {name: round(float(value), 3) for name, value in found.items()}


def inner_entries(tree: ll.LabelTree, Y: sp.csr_array) -> npt.NDArray[np.bool_]:
    """Say which entries of `node_rows` are of inner nodes other than the root."""
    indptr, _ = node_rows(tree, Y)
    node = np.repeat(np.arange(tree.n_nodes), np.diff(indptr))
    return np.asarray((tree.label[node] < 0) & (node > 0))


def clipping_bias() -> dict[str, dict[str, float]]:
    """Compare sums over the rows of inner nodes with the true number of rows that have a label below."""
    found = {}
    for name, law in (("A=0.55, B=1.5", runs.LAW), ("A=1, B=50", runs.STEEP_LAW)):
        shares = []
        for seed in TRUTH_SEEDS:
            case = truth_case(seed, law)
            noted, complete = sp.csr_array(case.noted), sp.csr_array(case.truth.Y)
            tree = runs.train(case, noted).trees_[0]
            inner = inner_entries(tree, noted)
            raw, most = (values[inner] for values in relevance_estimates(tree, noted, 1 / case.propensity))
            sums = np.array([len(raw), raw.sum(), np.clip(raw, 1, most).sum()])
            shares.append(sums / inner_entries(tree, complete).sum())
        share = dict(zip(("noted", "estimated", "clipped"), np.mean(shares, axis=0), strict=True))
        found[name] = {key: round(float(value), 3) for key, value in share.items()}
    return found


if __name__ == "__main__":
    main()
