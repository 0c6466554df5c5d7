"""``python -m benchmarks.refined``: trees, refined trees and one classifier per label, quality against cost.

Trains each on the shared data sets, writes ``benchmarks/results/refined.json`` and draws
``docs/figures/refined-cost.png``. One classifier per label takes a quarter of an hour on TIB-SID; what is
measured already is kept.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FormatStrFormatter

import longleaf as ll
from benchmarks.data import NAMES, RESULTS, ROOT, load, prepare
from benchmarks.measure import measure

FIGURE = ROOT / "docs" / "figures" / "refined-cost.png"
K = (1, 3, 5)
TAILS = (0.0, 0.5, 1.0)
KEPT = tuple(f"{name}@{k}" for name in ("p", "psp") for k in K)
MAKE: dict[str, Callable[[int], Any]] = {
    "trees": lambda seed: ll.PLT(refine=False, random_state=seed),
    "refined trees": lambda seed: ll.PLT(random_state=seed),
    "one classifier per label": lambda seed: ll.BR.pw_dismec(class_balanced=True, random_state=seed),
}
COLOURS = dict(zip(MAKE, ("tab:blue", "tab:green", "tab:red"), strict=True))
TITLES = {"eurlex57k": "EURLEX57K", "tib-sid": "TIB-SID"}


def run(data: str, model: str, seed: int) -> dict[str, Any]:
    """Train one model; return its costs, and its quality for each tail."""
    folder = prepare(data)
    X, Y = load(folder, "train")
    X_dev, Y_dev = load(folder, "dev")
    worth = ll.inverse_propensity(Y)
    trained, cost = measure(lambda: MAKE[model](seed).fit(X, Y))
    record: dict[str, Any] = {"data": data, "model": model, "seed": seed, "train_cpu": cost.cpu_seconds}
    for tail in TAILS:
        top, asked = measure(partial(trained.top_k, X_dev, max(K), tail=tail))
        found = ll.metrics.evaluate(Y_dev, top, inverse_propensity=worth, k=K)
        ece = ll.metrics.calibration(Y_dev, top, k=5).ece
        ms = 1000 * asked.cpu_seconds / X_dev.shape[0]
        record[f"tail {tail:g}"] = {**{key: found[key] for key in KEPT}, "ece@5": ece, "cpu_ms": ms}
    return record


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Draw quality against the CPU seconds of training, and the CPU milliseconds per row."""
    figure, axes = plt.subplots(len(NAMES), 2, figsize=(9, 3.2 * len(NAMES)), squeeze=False)
    for line, data in zip(axes, NAMES, strict=True):
        for panel, (label, cost) in zip(
            line, (("training, CPU s", None), ("search, CPU ms/row", "cpu_ms")), strict=True
        ):
            for record in records:
                if record["data"] != data:
                    continue
                for tail, marker in (("tail 0", "o"), ("tail 0.5", "s")):
                    found = record[tail]
                    x = record["train_cpu"] if cost is None else found[cost]
                    colour = COLOURS[record["model"]]
                    panel.plot(x, found["psp@5"], marker, color=colour, label=f"{record['model']}, {tail}")
            panel.set_xscale("log")
            for axis in (panel.xaxis.set_major_formatter, panel.xaxis.set_minor_formatter):
                axis(FormatStrFormatter("%g"))
            panel.tick_params(axis="x", which="both", labelsize=7)
            panel.set(xlabel=label, ylabel="psp@5, percent", title=TITLES[data])
            panel.grid(alpha=0.3)
    handles, names = axes[0][0].get_legend_handles_labels()
    unique = dict(zip(names, handles, strict=True))
    figure.legend(unique.values(), unique.keys(), loc="lower center", ncols=3, frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS / "refined.json")
    options = parser.parse_args()
    records = json.loads(options.out.read_text()) if options.out.exists() else []
    done = {(record["data"], record["model"], record["seed"]) for record in records}
    for data in NAMES:
        for model in MAKE:
            if (data, model, options.seed) not in done:
                records.append(run(data, model, options.seed))
                print(json.dumps(records[-1]), flush=True)
                options.out.write_text(json.dumps(records, indent=1) + "\n")
    draw(records, FIGURE)


if __name__ == "__main__":
    main()
