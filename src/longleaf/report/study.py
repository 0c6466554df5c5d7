"""All measurements of one model, made before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from longleaf.metrics import Calibration, calibration
from longleaf.metrics._calibration import CalibrationSums
from longleaf.metrics._frequency import BINS
from longleaf.report import measures
from longleaf.report.answers import TAILS, Answer, answer
from longleaf.report.problem import Problem, Side

Progress = Callable[[float], None]
HARDEST = 15


@dataclass(frozen=True, eq=False)
class Study:
    """The measurements of one side.

    Attributes
    ----------
    side : Side
    letter : str
        ``A`` or ``B`` if there are two models, otherwise empty.
    answers : list of Answer
        For increasing values of tail, from 0 to 1.
    count_bins : list of CountBin
        Recall by training rows, for the answers of ``shown``.
    by_place, by_dial, by_bin : dict to Calibration
        Reliability of the first k suggestions at tail 0 for every k, of all at tail 0 and 1, and of both
        together by the frequency of their labels.
    sizes : Sizes
        Fixed numbers of labels, and as many as are likely.
    costs : dict of str to Cost
        The cost of single rows at tail 0 and 1.
    changes : list of LabelChange
        Changes from tail 0 to tail 1.
    hardest : list of HardLabel
    sensitivity : Sensitivity
    """

    side: Side
    letter: str
    answers: list[Answer]
    count_bins: list[measures.CountBin]
    by_place: dict[int, Calibration]
    by_dial: dict[str, Calibration]
    by_bin: dict[str, Calibration]
    sizes: measures.Sizes
    costs: dict[str, measures.Cost]
    changes: list[measures.LabelChange]
    hardest: list[measures.HardLabel]
    sensitivity: measures.Sensitivity

    @property
    def shown(self) -> list[Answer]:
        """The answers for tail 0, 0.5 and 1."""
        return [self.answers[0], self.answers[len(self.answers) // 2], self.answers[-1]]

    @property
    def ends(self) -> list[Answer]:
        """The answers for tail 0 and 1."""
        return [self.answers[0], self.answers[-1]]

    @property
    def n_nodes(self) -> int:
        """The number of nodes with a classifier: all but the roots."""
        return sum(tree.n_nodes - 1 for tree in self.side.model.trees_)


def make_study(
    problem: Problem,
    side: Side,
    letter: str,
    *,
    samples: int,
    seed: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> Study:
    """Measure one model."""
    answers = []
    for place, tail in enumerate(TAILS):
        answers.append(answer(problem, side, tail, samples=samples, seed=seed, n_jobs=n_jobs))
        if progress is not None:
            progress(0.6 * (place + 1) / len(TAILS))
    plain, half, rare = answers[0], answers[len(answers) // 2], answers[-1]
    changes = measures.label_changes(problem, plain, rare)
    truth = problem.truth
    study = Study(
        side,
        letter,
        answers,
        measures.recall_by_count(problem, [plain, half, rare]),
        {at: calibration(truth, plain.ranking.top, at) for at in problem.places},
        {f"tail {one.tail:g}": calibration(truth, one.ranking.top, problem.k) for one in (plain, rare)},
        _reliability_by_bin(problem, plain, rare),
        measures.by_size(problem, side, samples=samples, seed=seed, n_jobs=n_jobs),
        {f"tail {one.tail:g}": measures.row_costs(problem, side, one) for one in (plain, rare)},
        changes,
        measures.hardest_labels(problem, changes, rare, HARDEST),
        measures.sensitivity(problem, side, plain, rare, n_jobs),
    )
    if progress is not None:
        progress(1.0)
    return study


def _reliability_by_bin(problem: Problem, plain: Answer, rare: Answer) -> dict[str, Calibration]:
    """Measure the reliability of the suggestions at both tails, each pair once, by the label's frequency."""
    labels, probability, hits = [], [], []
    for one in (plain, rare):
        given = one.labels >= 0
        if one is rare:  # skip what tail 0 also suggested
            given = given & ~(one.labels[:, :, None] == plain.labels[:, None, :]).any(axis=2)
        labels.append(one.labels[given])
        probability.append(one.ranking.top.probabilities[given])
        hits.append(one.hits[given])
    bins = problem.bins[np.concatenate(labels)]
    every, right = np.concatenate(probability), np.concatenate(hits)
    return {
        name: CalibrationSums.of(every[bins == number], right[bins == number]).result()
        for number, name in enumerate(BINS)
        if (bins == number).any()
    }
