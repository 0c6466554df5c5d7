"""``python -m benchmarks.objectives``: macro-F1@5, macro-recall@5 and coverage@5 of a batch, beside xcolumns.

xcolumns gets a matrix of the 200 best probabilities of each row, of the same model; longleaf searches all
labels. Writes ``benchmarks/results/objectives.json`` and draws ``docs/figures/objectives.png``. What is
measured already is kept; each run is a process of its own. CPU seconds are those of one thread. The peer's
cost includes that of the matrix; its memory the matrix itself, but not what making it takes.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import longleaf as ll
from benchmarks.data import RESULTS, ROOT, load, source_folder
from benchmarks.measure import measure
from benchmarks.paper.sets import SETS, prepare
from longleaf.objectives.measures import MEASURES
from longleaf.objectives.rows import RowSet

K, DEPTH, SEED = 5, 200, 1
NAMES = ("Bibtex", "Delicious", "EURLEX57K", "TIB-SID")
MODELS = ("refined", "trees")
GOALS = (
    ("macro_f1", "coordinate"),
    ("macro_f1", "frank-wolfe"),
    ("macro_recall", "coordinate"),
    ("coverage", "coordinate"),
)
KEPT = tuple(f"{name}@{K}" for name in ("macro_f1", "macro_recall", "coverage", "p"))
NO_MIXTURES = ("TIB-SID",)
"""Frank-Wolfe searches all rows about twenty times, on 20,000 rows for minutes."""
WORK = ROOT / "build" / "objectives"
PEER = ROOT / ".venv-xcolumns" / "bin" / "python"
FIGURE = ROOT / "docs" / "figures" / "objectives.png"
MOST_SECONDS = 600

Record = dict[str, Any]


def rows_of(data: str, split: str) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Load features and labels of a split; dev is what judges."""
    return load(prepare(SETS[data], source_folder()), split)


def model_of(data: str, kind: str) -> ll.PLT:
    """Load a model, trained the first time."""
    path = WORK / f"{data}-{kind}.ll"
    if not path.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        ll.PLT(random_state=SEED, refine=kind == "refined").fit(*rows_of(data, "train")).save(path)
    model: ll.PLT = ll.load(path)
    model.n_jobs = 1
    return model


def expected(model: ll.PLT, X: sp.csr_matrix, labels: Any) -> dict[str, float]:
    """Return the measures expected under the model, and two of them as their papers have them.

    The papers count no label as expected in at least one row.
    """
    row, place = np.nonzero(labels >= 0)
    label = labels[row, place]
    eta = model.probability(X, row, label).astype(np.float64)
    predicted = np.bincount(label, minlength=model.n_labels_).astype(np.float64)
    _, plain = RowSet.of(model, X, 1).survey(K, MEASURES["coverage"], None)
    result = {}
    for name in ("macro_f1", "macro_recall", "coverage"):
        total: Any = np.bincount(label, MEASURES[name].term(eta), model.n_labels_)
        sums = plain.sums._replace(total=total, predicted=predicted)
        result[name] = 100 * float(MEASURES[name].value(sums).mean())
        if name != "coverage":
            whole = predicted + plain.positives if name == "macro_f1" else plain.positives
            value = np.divide(
                total * (2 if name == "macro_f1" else 1), whole, out=np.zeros_like(total), where=whole > 0
            )
            result[f"{name} as published"] = 100 * float(value.mean())
    return result


def judged(data: str, kind: str, labels: Any) -> Record:
    """Return what predictions are worth under the model and on true labels."""
    X, Y = rows_of(data, "dev")
    found = ll.metrics.evaluate(Y, labels, k=K)
    return {"expected": expected(model_of(data, kind), X, labels), **{key: found[key] for key in KEPT}}


def run_own(data: str, kind: str, goal: str, method: str) -> Record:
    """Measure longleaf, in this process; ``goal`` "plain" is the plain top k, "matrix" the peer's matrix."""
    model, (X, _) = model_of(data, kind), rows_of(data, "dev")
    for start in range(0, X.shape[0], 512):  # so that the model is in memory
        model.top_k(X[start : start + 512], K)

    def call() -> Any:
        if goal == "plain":
            return model.top_k(X, K)
        if goal == "matrix":
            return model.top_k(X, min(DEPTH, model.n_labels_)).to_csr(model.n_labels_)
        return ll.optimize(model, X, K, measure=goal, method=method, random_state=SEED)

    found, cost = measure(call)
    record: Record = {"cpu_seconds": cost.cpu_seconds, "peak_bytes": cost.peak_bytes}
    if goal == "matrix":
        sp.save_npz(WORK / f"{data}-{kind}.npz", sp.csr_matrix(found), compressed=False)
        size = found.data.nbytes + found.indices.nbytes + found.indptr.nbytes
        return record | {"bytes": size}
    top = found if goal == "plain" else found.top
    if goal != "plain":
        record |= {"value": found.value, "history": found.history}
    return record | judged(data, kind, top.labels)


def run_peer(data: str, kind: str, goal: str, method: str, matrix: Record) -> Record | None:
    """Measure xcolumns on the matrix, which its cost includes; None if it takes too long."""
    out = WORK / f"{data}-{kind}.npy"
    arguments = [str(WORK / f"{data}-{kind}.npz"), str(out), goal, method, str(K), str(SEED)]
    one_thread = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [PEER, "-m", "benchmarks.objectives.peer", *arguments],
            cwd=ROOT,
            env=os.environ | one_thread,
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return None
    cost = json.loads(done.stdout.splitlines()[-1])
    return {
        "cpu_seconds": matrix["cpu_seconds"] + cost["cpu_seconds"],
        "own_cpu_seconds": cost["cpu_seconds"],
        "peak_bytes": matrix["bytes"] + cost["peak_bytes"],
        **judged(data, kind, np.load(out)),
    }


def run_mixture(data: str, kind: str) -> Record:
    """Make a mixture for half of the rows, and serve the other half with it."""
    model, (X, Y) = model_of(data, kind), rows_of(data, "dev")
    order = np.random.default_rng(SEED).permutation(X.shape[0])
    first, second = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    made = ll.optimize(model, X[first], K, method="frank-wolfe", random_state=SEED)
    assert made.mixture is not None
    served = made.mixture.top_k(model, X[second], random_state=SEED)
    own = ll.optimize(model, X[second], K, method="frank-wolfe", random_state=SEED).top
    tops = {"plain": model.top_k(X[second], K), "mixture of other rows": served, "of these rows": own}
    key = f"macro_f1@{K}"
    values = {name: ll.metrics.evaluate(Y[second], top, k=K)[key] for name, top in tops.items()}
    return {"utilities": len(made.mixture.utilities), key: values}


def alone(*arguments: str) -> Record:
    """Run one measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.objectives", "--one", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    record: Record = json.loads(done.stdout.splitlines()[-1])
    return record


def study(records: list[Record], out: Path, names: list[str]) -> None:
    """Measure what is missing."""
    done = {tuple(record[key] for key in ("data", "model", "system", "goal", "method")) for record in records}

    def missing(*key: str) -> bool:
        return key not in done

    def keep(key: tuple[str, ...], found: Record) -> None:
        records.append(dict(zip(("data", "model", "system", "goal", "method"), key, strict=True), **found))
        print(json.dumps(records[-1]), flush=True)
        out.write_text(json.dumps(records, indent=1) + "\n")

    for data in names:
        goals = [goal for goal in GOALS if goal[1] == "coordinate" or data not in NO_MIXTURES]
        for kind in MODELS:
            for goal, method in (("plain", "top-k"), *goals):
                if missing(data, kind, "longleaf", goal, method):
                    keep((data, kind, "longleaf", goal, method), alone(data, kind, goal, method))
            mixes = kind == "refined" and data not in NO_MIXTURES
            if mixes and missing(data, kind, "longleaf", "macro_f1", "mixture"):
                keep((data, kind, "longleaf", "macro_f1", "mixture"), alone(data, kind, "mixture", ""))
            wanted = [goal for goal in goals if missing(data, kind, "xcolumns", *goal)]
            if wanted and PEER.exists():
                matrix = alone(data, kind, "matrix", "")
                for goal, method in wanted:
                    found = run_peer(data, kind, goal, method, matrix)
                    keep((data, kind, "xcolumns", goal, method), found or {"cpu_seconds_above": MOST_SECONDS})


def draw(records: list[Record], path: Path) -> None:
    """Draw what each goal makes of macro-F1, coverage and precision, on true labels."""
    panels = (f"macro_f1@{K}", f"coverage@{K}", f"p@{K}")
    bars = {"plain": "tab:gray", "macro_f1": "tab:blue", "coverage": "tab:orange"}
    names = {"plain": "plain top 5", "macro_f1": "for macro-F1", "coverage": "for coverage"}
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2))
    for panel, metric in zip(axes, panels, strict=True):
        for offset, (goal, colour) in enumerate(bars.items()):
            found = {
                record["data"]: record[metric]
                for record in records
                if record["model"] == "refined"
                and record["system"] == "longleaf"
                and record["goal"] == goal
                and record["method"] in ("top-k", "coordinate")
            }
            places = [place + 0.27 * (offset - 1) for place in range(len(NAMES))]
            heights = [found.get(data, 0.0) for data in NAMES]
            panel.bar(places, heights, 0.25, color=colour, label=names[goal])
            for place, height in zip(places, heights, strict=True):
                panel.text(place, height, f"{height:.0f}", ha="center", va="bottom", fontsize=7)
        panel.set_xticks(range(len(NAMES)), NAMES, fontsize=8)
        panel.set(title=metric.replace("_f1", "-F1"), ylabel="percent, true labels")
        panel.grid(axis="y", alpha=0.3)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", action="append", choices=NAMES)
    parser.add_argument("--out", type=Path, default=RESULTS / "objectives.json")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        data, kind, goal, method = options.one
        found = run_mixture(data, kind) if goal == "mixture" else run_own(data, kind, goal, method)
        print(json.dumps(found))
        return
    records = json.loads(options.out.read_text()) if options.out.exists() else []
    study(records, options.out, options.data or list(NAMES))
    draw(records, FIGURE)


if __name__ == "__main__":
    main()
