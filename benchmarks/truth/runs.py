"""What theory says, measured where the truth is known; `benchmarks.truth` draws it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import longleaf as ll
from benchmarks.truth.lookup import least_evaluations, lookup_model, one_by_one
from longleaf.datasets import Truth, lose_labels, make_truth
from longleaf.propensity import inverse_propensity_from_counts

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
LAW = (0.55, 1.5)
PLACES = (1, 3, 5)
STEEP_LAW = (1.0, 50.0)
"""Loses most of what has fewer than about 50 rows: here labels that are learnt well are lost, too."""
LEARNABLE: dict[str, Any] = {
    "n_rows": 5000,
    "n_labels": 100,
    "n_test": 2000,
    "sharpness": 40.0,
    "noise": 0.1,
    "labels_per_row": 4.0,
    "features_per_row": 40.0,
}
"""Sizes at which trees come near the true probabilities: what is wrong then is the labels, not the trees."""
LEARNT = {"n_trees": 1, "C": 4.0, "refine": False}


@dataclass(frozen=True, eq=False)
class Case:
    """A truth, the propensities by which labels were lost, and what is noted of training and test."""

    truth: Truth
    propensity: Floats
    noted: Any
    noted_test: Any

    @property
    def counts(self) -> Ints:
        """Training rows that each label is noted in."""
        return np.asarray(self.noted.sum(axis=0), np.int64).ravel()

    @property
    def n_rows(self) -> int:
        """Training rows."""
        return int(self.noted.shape[0])


def make_case(
    seed: int, n_rows: int, n_labels: int, n_test: int, law: tuple[float, float] | None = LAW, **options: Any
) -> Case:
    """Make data whose labels are lost by Jain's law with constants (A, B), or not at all (None)."""
    truth = make_truth(n_rows, 4 * n_labels, n_labels, n_test=n_test, random_state=seed, **options)
    propensity = np.ones(n_labels)
    if law is not None:
        propensity = truth.propensities(lambda noted: inverse_propensity_from_counts(noted, n_rows, *law))
    noted, noted_test = (
        lose_labels(Y, propensity, random_state=seed + place)
        for place, Y in enumerate((truth.Y, truth.Y_test))
    )
    return Case(truth, propensity, noted, noted_test)


def ranked(scores: Floats, k: int) -> Ints:
    """Give the k labels of the highest scores of each row."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def rules(case: Case, seed: int = 0) -> dict[str, Floats]:
    """Give the scores [test rows, labels] of the plug-in rule with the true probabilities, and of others."""
    q, eta_noted = 1 / case.propensity, case.truth.eta_test * case.propensity
    shape = eta_noted.shape
    return {
        "q η̃": q * eta_noted,
        "η̃": eta_noted,
        "√q η̃": np.sqrt(q) * eta_noted,
        "q² η̃": q**2 * eta_noted,
        "q": np.broadcast_to(q, shape),
        "frequent": np.broadcast_to(case.counts, shape),
        "random": np.random.default_rng(seed).random(shape),
    }


def compare_rules(case: Case, k: int) -> dict[str, tuple[float, float, float]]:
    """Judge each rule, in percent.

    Give psp@k of the noted labels (not normalised), p@k of the complete ones, and what p@k is expected to be
    by the true probabilities.
    """
    found = {}
    for name, scores in rules(case).items():
        top = ranked(scores, k)
        noted = ll.metrics.evaluate(case.noted_test, top, 1 / case.propensity, k=k, normalize=False)
        complete = ll.metrics.evaluate(case.truth.Y_test, top, k=k)
        expected = 100 * np.take_along_axis(case.truth.eta_test, top, axis=1).mean()
        found[name] = (noted[f"psp@{k}"], complete[f"p@{k}"], float(expected))
    return found


def precision_by_dial(case: Case, dials: Sequence[float], k: int) -> list[tuple[float, float]]:
    """Rank by ``q**t`` times the true noted probability: psp@k of noted labels and expected complete p@k."""
    found = []
    for dial in dials:
        top = ranked(case.truth.eta_test * case.propensity ** (1 - dial), k)
        noted = ll.metrics.evaluate(case.noted_test, top, 1 / case.propensity, k=k, normalize=False)
        expected = 100 * np.take_along_axis(case.truth.eta_test, top, axis=1).mean()
        found.append((noted[f"psp@{k}"], float(expected)))
    return found


def train(case: Case, labels: Any, **options: Any) -> ll.PLT:
    """Train the small trees that the runs are about."""
    settings = LEARNT | {"max_leaf": 20, "random_state": 1, "n_jobs": 1} | options
    return ll.PLT.paper(**settings).fit(case.truth.X, labels)


def complete_precision(case: Case, model: ll.PLT, **options: Any) -> Floats:
    """Judge a model on the complete test labels: p@1, p@3, p@5."""
    top = model.top_k(case.truth.X_test, k=max(PLACES), **options)
    found = ll.metrics.evaluate(case.truth.Y_test, top, k=PLACES)
    return np.array([found[f"p@{k}"] for k in PLACES])


def wrong_constants(case: Case, constants: Sequence[tuple[float, float]]) -> dict[Any, Floats]:
    """Judge corrections on the complete labels: p@1, p@3, p@5.

    Of PLT (``"PLT"``), of PS-PLT with each (A, B), of PLT trained on complete labels (``"complete"``), and
    of the true probabilities (``"best"``).
    """
    model = train(case, case.noted)
    found: dict[Any, Floats] = {"PLT": complete_precision(case, model)}
    for pair in constants:
        found[pair] = complete_precision(case, model, tail=1.0, propensity=pair)
    found["complete"] = complete_precision(case, train(case, case.truth.Y))
    best = ll.metrics.evaluate(case.truth.Y_test, ranked(case.truth.eta_test, max(PLACES)), k=PLACES)
    found["best"] = np.array([best[f"p@{k}"] for k in PLACES])
    return found


def correction_by_cost(case: Case, costs: Sequence[float]) -> list[tuple[float, ...]]:
    """Give C and complete p@1: of PLT and PS-PLT trained on noted labels, then trained on complete ones."""
    found = []
    for C in costs:
        models = [train(case, labels, C=C) for labels in (case.noted, case.truth.Y)]
        plain_and_scored = [
            float(complete_precision(case, model, tail=tail, propensity=STEEP_LAW)[0])
            for model in models
            for tail in (0.0, 1.0)
        ]
        found.append((float(C), *plain_and_scored))
    return found


@dataclass(frozen=True)
class Searched:
    """What the searches cost and lose at one spread of the gains."""

    spread: float
    a_star: float
    uniform_cost: float
    plain: float
    beam: float
    regret: float


def search_costs(case: Case, dials: Sequence[float], k: int = 5, beam: int = 10) -> list[Searched]:
    """Search a tree that knows the true noted probabilities, with gains ``q ** t`` for each dial t.

    Evaluated nodes a row: by A*; by uniform-cost search that has to find the same labels without bounds;
    by uniform-cost search without gains (which finds others); by beam search. Regret is the share of the
    best k scores that the beam's fall short of; the spread is the standard deviation of log gains.
    """
    eta_noted = case.truth.eta_test * case.propensity
    tree = ll.LabelTree.complete(np.arange(eta_noted.shape[1]), max_leaf=10)
    model, rows = lookup_model(eta_noted, [tree])
    plain = float(one_by_one(model, rows, k=k).evaluations.mean())
    found = []
    for dial in dials:
        gain = case.propensity**-dial
        exact = one_by_one(model, rows, k=k, gain=gain)
        cut = one_by_one(model, rows, k=k, gain=gain, search="beam", beam=beam)
        blind = least_evaluations(eta_noted, tree, gain, k, informed=False)
        found.append(
            Searched(
                spread=float(np.log(gain).std()),
                a_star=float(exact.evaluations.mean()),
                uniform_cost=float(blind.mean()),
                plain=plain,
                beam=float(cut.evaluations.mean()),
                regret=float(1 - (cut.scores.sum(axis=1) / exact.scores.sum(axis=1)).mean()),
            )
        )
    return found


def union_losses(
    case: Case, noises: Sequence[float], dial: float = 1.0, n_trees: int = 3, k: int = 5
) -> list[tuple[float, float, float]]:
    """Compare the union rule with the exact ensemble, where each tree is off by some noise in its logits.

    Give the noise, the share of rows whose top k differ, and the share of the best scores that is lost.
    """
    eta_noted = case.truth.eta_test * case.propensity
    labels = np.arange(eta_noted.shape[1])
    trees = [ll.LabelTree.random(labels, np.random.RandomState(t), max_leaf=10) for t in range(n_trees)]
    gain = case.propensity**-dial
    found = []
    for noise in noises:
        model, rows = lookup_model(eta_noted, trees, noise)
        exact, union = (model.top_k(rows, k=k, gain=gain, ensemble=rule) for rule in ("mean", "union"))
        differs = (np.sort(exact.labels, axis=1) != np.sort(union.labels, axis=1)).any(axis=1)
        lost = 1 - (union.scores.sum(axis=1) / exact.scores.sum(axis=1)).mean()
        found.append((float(noise), float(differs.mean()), float(lost)))
    return found
