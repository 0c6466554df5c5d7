"""``python -m benchmarks.certificates``: what certificates prove, what limits lose, and what utilities cost.

Trains the default and the trees alone on the shared data sets (kept in ``build/bench-data``) and searches dev
rows for the best five labels: by beams of several widths and with limits, against exact search, and by
utilities against gains. Writes ``benchmarks/results/certificates.json`` and draws
``docs/figures/certificates.png``. CPU times are those of one thread.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import longleaf as ll
from benchmarks.data import NAMES, RESULTS, ROOT, load, prepare, trained
from benchmarks.measure import best_of

FIGURE = ROOT / "docs" / "figures" / "certificates.png"
KINDS: dict[str, dict[str, Any]] = {"trees": {"refine": False}, "default": {}}
BEAMS = (1, 2, 5, 10, 20, 50, 100)
NODES = (300, 1000, 3000)
K, ROWS, ALONE = 5, 1500, 100
TITLES = {"eurlex57k": "EURLEX57K", "tib-sid": "TIB-SID"}
COLOURS = {"eurlex57k": "tab:blue", "tib-sid": "tab:green"}


def milliseconds(model: Any, X: Any, **options: Any) -> float:
    """Return the CPU milliseconds per row of rows that come together."""
    cost = best_of(lambda: model.top_k(X, K, n_jobs=1, **options), 3)[1]
    return 1000 * cost.cpu_seconds / int(X.shape[0])


def milliseconds_alone(model: Any, X: Any, **options: Any) -> float:
    """Return the CPU milliseconds of a row that comes by itself."""
    rows = [X[i : i + 1] for i in range(min(ALONE, X.shape[0]))]

    def ask() -> None:
        for row in rows:
            model.top_k(row, K, n_jobs=1, **options)

    cost = best_of(ask, 3)[1]
    return 1000 * cost.cpu_seconds / len(rows)


def early(model: Any, X: Any, tail: float) -> list[dict[str, Any]]:
    """Search with beams and limits; say what is proved, what is right, and what is lost."""
    exact = model.top_k(X, K, tail=tail)
    ways: list[tuple[str, float, dict[str, Any]]] = [("exact", 0, {}), ("auto", 0, {"search": "auto"})]
    ways += [("beam", beam, {"search": "beam", "beam": beam}) for beam in BEAMS]
    ways += [("max_nodes", nodes, {"search": "auto", "max_nodes": nodes}) for nodes in NODES]
    ways += [("epsilon", epsilon, {"epsilon": epsilon}) for epsilon in (0.01, 0.1)]
    found = []
    for way, size, options in ways:
        top = model.top_k(X, K, tail=tail, **options)
        right = np.isclose(top.scores, exact.scores, rtol=1e-5, atol=1e-12).all(axis=1)
        assert right[top.exact].all()
        record = {"way": way, "size": size, "proved": top.exact.mean(), "right": right.mean()}
        record["lost"] = 1 - float(top.scores.sum(dtype=float) / exact.scores.sum(dtype=float))
        record["ms"] = milliseconds(model, X, tail=tail, **options)
        record["ms alone"] = milliseconds_alone(model, X, tail=tail, **options)
        found.append(
            {name: value if isinstance(value, str) else float(value) for name, value in record.items()}
        )
    return found


def utilities(model: Any, X: Any) -> dict[str, dict[str, float]]:
    """Return what utilities cost beside the plain search."""
    gain, random = model.inverse_propensity(), np.random.default_rng(1)
    n_labels = len(gain)
    ways: dict[str, dict[str, Any]] = {"plain": {}, "gains": {"tail": 1.0}}
    ways["the same gains as a utility"] = {"utility": ll.Utility(gain)}
    ways["costs"] = {"utility": ll.Utility(gain, -random.uniform(0, 0.2, n_labels))}
    ways["a tenth of the labels"] = {"utility": ll.Utility(gain, mask=random.random(n_labels) < 0.1)}
    quotas: dict[str, Any] = {"groups": random.integers(0, 50, n_labels), "quota": 1}
    ways["one of each of 50 groups"] = {"utility": ll.Utility(gain, **quotas)}
    found = {}
    for name, options in ways.items():
        found[name] = {
            "ms": milliseconds(model, X, **options),
            "ms alone": milliseconds_alone(model, X, **options),
        }
    known = ways["costs"]["utility"]
    one = X[:1]

    def prepare_one() -> None:
        model.top_k(one, K, utility=ll.Utility(gain), n_jobs=1)

    def replace_some() -> None:
        model.top_k(one, K, utility=known.replace(np.arange(10), a=2.0), n_jobs=1)

    for name, call in (("a new utility", prepare_one), ("ten labels replaced", replace_some)):
        found[name] = {"ms alone": 1000 * best_of(call, 3)[1].cpu_seconds}
    return found


def study(data: str, seed: int) -> dict[str, Any]:
    X = load(prepare(data), "dev")[0][:ROWS]
    record: dict[str, Any] = {"data": data, "seed": seed, "rows": X.shape[0], "k": K}
    for kind, params in KINDS.items():
        model = trained(data, seed, kind, **params)
        record[kind] = {f"tail {tail}": early(model, X, tail) for tail in (0, 1)}
        record[kind]["utilities"] = utilities(model, X)
    return record


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Draw what is proved and what is right against the width of the beam, and what is lost against time."""
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.6))
    for panel, kind in zip(panels, KINDS, strict=False):
        for record in records:
            beams = [one for one in record[kind]["tail 1"] if one["way"] == "beam"]
            colour, name = COLOURS[record["data"]], TITLES[record["data"]]
            sizes = [one["size"] for one in beams]
            panel.plot(
                sizes, [100 * one["proved"] for one in beams], "o-", color=colour, label=f"{name}, proved"
            )
            panel.plot(
                sizes, [100 * one["right"] for one in beams], "--", color=colour, label=f"{name}, right"
            )
        title = "trees alone" if kind == "trees" else "refined labels (default)"
        panel.set(xlabel="beam", ylabel="% of the rows, tail 1", xscale="log", ylim=(-3, 103), title=title)
    for record in records:
        colour, name = COLOURS[record["data"]], TITLES[record["data"]]
        for way, style in (("beam", "o-"), ("max_nodes", "s:")):
            some = [one for one in record["trees"]["tail 1"] if one["way"] == way]
            lost = [max(100 * one["lost"], 1e-3) for one in some]
            label = "beam" if way == "beam" else "auto, most nodes"
            panels[2].plot([one["ms"] for one in some], lost, style, color=colour, label=f"{name}, {label}")
        exact = record["trees"]["tail 1"][0]["ms"]
        panels[2].axvline(exact, color=colour, linewidth=1, label=f"{name}, exact")
    panels[2].set(
        xlabel="CPU ms a row, trees alone", ylabel="% of the score lost", yscale="log", xlim=(0, None)
    )
    for panel in panels:
        panel.grid(alpha=0.3)
    panels[0].legend(frameon=False, fontsize=7)
    panels[2].legend(fontsize=7, loc="upper right")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS / "certificates.json")
    options = parser.parse_args()
    records = [study(data, options.seed) for data in NAMES]
    options.out.write_text(json.dumps(records, indent=1) + "\n")
    for record in records:
        print(json.dumps(record, indent=1))
    draw(records, FIGURE)


if __name__ == "__main__":
    main()
