"""Theory where the truth is known: ``python -m benchmarks.truth`` draws docs/figures and keeps numbers."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import longleaf as ll
from benchmarks.data import ROOT
from benchmarks.truth import runs
from longleaf.propensity import Audit, fit, inverse_propensity_from_counts

SEEDS = (1, 2, 3, 4, 5)
SMALL: dict[str, Any] = {"n_rows": 3000, "n_labels": 300, "n_test": 500}
GRID_A, GRID_B = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0), (0.4, 1.5, 5.0, 15.0, 50.0, 150.0, 500.0)
COSTS = (1.0, 4.0, 16.0)
DIALS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
BEAMS = (3, 5, 10, 20)
NOISES = (0.0, 0.5, 1.0, 2.0)
AUDITED = (100, 300, 1000)

Result = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(FIGURES)}; all, if left out")
    parser.add_argument("--figures", type=Path, default=ROOT / "docs" / "figures")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "truth.json")
    options = parser.parse_args()
    options.figures.mkdir(parents=True, exist_ok=True)
    results = json.loads(options.results.read_text()) if options.results.exists() else {}
    for name in options.names or FIGURES:
        figure, results[name] = FIGURES[name]()
        figure.tight_layout()
        figure.savefig(options.figures / f"truth-{name}.png", dpi=90)
        plt.close(figure)
        options.results.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        print(options.figures / f"truth-{name}.png")


def draw_rules() -> tuple[Any, Result]:
    """Draw that every rule lies on the diagonal, and that none is beyond the plug-in rule."""
    cases = [runs.make_case(seed, **SMALL) for seed in SEEDS]
    figure, (every, dial) = plt.subplots(1, 2, figsize=(9, 4.2))
    found = [runs.compare_rules(case, 5) for case in cases]
    result: Result = {}
    for name in found[0]:
        psp, p, expected = np.mean([one[name] for one in found], axis=0)
        result[name] = {"psp@5": psp, "complete p@5": p, "expected p@5": expected}
        every.plot(p, psp, "o", label=f"{name}: {expected:.1f}")
    every.axline((0, 0), slope=1, color="black", linewidth=0.5)
    every.set(xlabel="p@5 on complete labels, percent", ylabel="psp@5 on noted labels, percent")
    every.legend(fontsize=7, title="rule: expected p@5", title_fontsize=7)
    exponents = np.linspace(0, 2, 9)
    for k, colour in ((1, "tab:green"), (3, "tab:blue"), (5, "tab:orange")):
        curves = np.mean([runs.precision_by_dial(case, list(exponents), k) for case in cases], axis=0)
        result[f"q^t, k={k}"] = curves.tolist()
        dial.plot(exponents, curves[:, 0], "o:", color=colour, label=f"psp@{k}, noted")
        dial.plot(exponents, curves[:, 1], "-", color=colour, label=f"p@{k}, complete, expected")
    dial.axvline(1, color="black", linewidth=0.5)
    dial.set(xlabel="t, for the rule $q^t$ η̃", ylabel="percent")
    dial.legend(fontsize=7)
    return figure, result


def draw_constants() -> tuple[Any, Result]:
    """Draw what wrong constants cost, and what the strength of regularisation does to the correction."""
    a, b = runs.STEEP_LAW
    pairs = [(one, b) for one in GRID_A] + [(a, one) for one in GRID_B]
    cases = [runs.make_case(seed, law=runs.STEEP_LAW, **runs.LEARNABLE) for seed in SEEDS]
    each = [runs.wrong_constants(case, pairs) for case in cases]
    found = {key: np.mean([one[key] for one in each], axis=0) for key in each[0]}
    figure, axes = plt.subplots(1, 3, figsize=(13, 4))
    for axis, grid, right, keys in (
        (axes[0], GRID_A, a, [(one, b) for one in GRID_A]),
        (axes[1], GRID_B, b, [(a, one) for one in GRID_B]),
    ):
        axis.plot(grid, [found[key][0] for key in keys], "o-", color="tab:green", label="PS-PLT")
        for name, style in (("PLT", "-"), ("complete", "--"), ("best", ":")):
            axis.axhline(found[name][0], color="black", linestyle=style, label=name)
        axis.axvline(right, color="tab:green", linewidth=0.5)
        axis.set_ylabel("p@1 on complete labels, percent")
        axis.legend(fontsize=7)
    axes[0].set_xlabel(f"A of the correction (B = {b:g}; labels were lost with A = {a:g})")
    axes[1].set_xlabel(f"B of the correction (A = {a:g}; labels were lost with B = {b:g})")
    axes[1].set_xscale("log")
    by_cost = np.mean([runs.correction_by_cost(case, COSTS) for case in cases], axis=0)
    names = ("PLT, noted", "PS-PLT, noted", "PLT, complete", "PS-PLT, complete")
    for name, values, style in zip(names, by_cost.T[1:], ("k-", "g-", "k--", "g--"), strict=True):
        axes[2].semilogx(by_cost[:, 0], values, style, marker="o", label=name)
    axes[2].set(xlabel="C", ylabel="p@1 on complete labels, percent")
    axes[2].legend(fontsize=7)
    numbers = {str(key): list(value) for key, value in found.items()}
    return figure, {"p@1,3,5": numbers, "p@1 by C": dict(zip(names, by_cost.T[1:].tolist(), strict=True))}


def draw_searches() -> tuple[Any, Result]:
    """Draw what each search evaluates, and what the beam loses, as gains spread."""
    cases = [runs.make_case(seed, **SMALL) for seed in SEEDS]
    by_beam = {beam: [runs.search_costs(case, DIALS, beam=beam) for case in cases] for beam in BEAMS}

    def mean(beam: int, key: str) -> list[float]:
        return list(np.mean([[getattr(one, key) for one in of_case] for of_case in by_beam[beam]], axis=0))

    figure, (costs, regrets) = plt.subplots(1, 2, figsize=(10, 4))
    spread = mean(10, "spread")
    shown = {"a_star": "A*", "uniform_cost": "uniform-cost, same labels", "plain": "uniform-cost, no gains"}
    for (key, name), style in zip(shown.items(), ("ko-", "ko--", "k-."), strict=True):
        costs.plot(spread, mean(10, key), style, label=name)
    for place, beam in enumerate(BEAMS):
        costs.plot(spread, mean(beam, "beam"), ":", color=f"C{place}", label=f"beam {beam}")
        lost = [100 * one for one in mean(beam, "regret")]
        regrets.plot(spread, lost, "o-", color=f"C{place}", label=f"beam {beam}")
    costs.set(xlabel="spread of log q", ylabel="nodes evaluated a row")
    regrets.set(xlabel="spread of log q", ylabel="score lost by the beam, percent")
    for axis in (costs, regrets):
        axis.legend(fontsize=7, loc="upper left")
    result: Result = {"dials": DIALS, "spread": spread} | {key: mean(10, key) for key in shown}
    result |= {f"beam {beam}": {key: mean(beam, key) for key in ("beam", "regret")} for beam in BEAMS}
    return figure, result


def draw_union() -> tuple[Any, Result]:
    """Draw what the union rule loses, as trees disagree."""
    cases = [runs.make_case(seed, **SMALL) for seed in SEEDS]
    figure, (rows, scores) = plt.subplots(1, 2, figsize=(9, 4))
    result: Result = {}
    for n_trees in (2, 3, 5):
        found = np.mean([runs.union_losses(case, NOISES, n_trees=n_trees) for case in cases], axis=0)
        result[f"{n_trees} trees"] = found.tolist()
        rows.plot(found[:, 0], 100 * found[:, 1], "o-", label=f"{n_trees} trees")
        scores.plot(found[:, 0], 100 * found[:, 2], "o-", label=f"{n_trees} trees")
    rows.set(xlabel="error of the trees' logits", ylabel="rows with another top 5, percent")
    scores.set(xlabel="error of the trees' logits", ylabel="score lost by the union rule, percent")
    rows.legend(fontsize=7)
    return figure, result


def draw_audit() -> tuple[Any, Result]:
    """Draw the propensity curve from larger and larger audits, and the order of two models over A and B."""
    case = runs.make_case(SEEDS[0], law=runs.STEEP_LAW, **runs.LEARNABLE)
    points = np.unique(np.geomspace(1, case.counts.max(), 60).astype(int))
    figure, axes = plt.subplots(1, len(AUDITED) + 1, figsize=(15, 3.8))
    result: Result = {}
    for axis, n_audited in zip(axes, AUDITED, strict=False):
        audit = Audit(case.noted_test[:n_audited], case.truth.Y_test[:n_audited], case.counts, case.n_rows)
        found = fit(audit, n_samples=200)
        result[str(n_audited)] = {
            "A": (found.a, *found.a_interval),
            "B": (found.b, *found.b_interval),
            "true labels": found.n_true,
        }
        value, low, high = found.curve(points)
        axis.fill_between(points, low, high, alpha=0.3)
        axis.loglog(points, value, label=f"{n_audited} audited rows")
        true = inverse_propensity_from_counts(points, case.n_rows, *runs.STEEP_LAW)
        axis.loglog(points, true, "k:", label="truth")
        copied = inverse_propensity_from_counts(points, case.n_rows, *runs.LAW)
        axis.loglog(points, copied, "--", color="tab:gray", label="A = 0.55, B = 1.5")
        axis.set(xlabel="training rows of the label", ylabel="inverse propensity")
        axis.legend(fontsize=7)
    model = runs.train(case, case.noted)
    plain, scored = (
        model.top_k(case.truth.X_test, tail=tail, propensity=runs.STEEP_LAW) for tail in (0.0, 1.0)
    )
    grid = ll.psp_sensitivity(case.noted_test, plain, scored, case.counts, case.n_rows, a=GRID_A, b=GRID_B)[
        "psp@1"
    ]
    figure.colorbar(grid.draw(axes[-1]), label="psp@1, PS-PLT minus PLT")
    return figure, result | {"PS-PLT minus PLT": grid.difference.tolist()}


FIGURES: dict[str, Callable[[], tuple[Any, Result]]] = {
    "rules": draw_rules,
    "searches": draw_searches,
    "union": draw_union,
    "audit": draw_audit,
    "constants": draw_constants,
}
