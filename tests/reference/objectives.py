"""Measures of a whole set of predictions as expected under a model, label by label, as they are defined."""

import itertools


def expected(measure, probability, chosen, positives=None):
    """Return a measure from 0 to 1; ``probability`` is [rows][labels], ``chosen`` a list per row."""
    rows = [dict.fromkeys(labels, 1.0) for labels in chosen]
    return of_shares(measure, probability, rows, positives)


def of_shares(measure, probability, shares, positives=None):
    """Return a measure where each row is predicted a label with some chance: a dict per row."""
    n_rows, n_labels = len(probability), len(probability[0])
    total = 0.0
    for label in range(n_labels):
        hits = predicted = 0.0
        missed = 1.0
        for row, given in zip(probability, shares, strict=True):
            share = given.get(label, 0.0)
            hits += share * row[label]
            predicted += share
            missed *= 1 - share * row[label]
        positive = sum(row[label] for row in probability) if positives is None else positives[label]
        negative = n_rows - positive
        values = {
            "macro_f1": 2 * hits / (predicted + max(positive, 1)),
            "macro_precision": hits / max(predicted, 1),
            "macro_recall": hits / max(positive, 1),
            "macro_balanced_accuracy": (
                hits / max(positive, 1) + (negative - predicted + hits) / max(negative, 1)
            )
            / 2,
            "coverage": 1 - missed,
        }
        total += values[measure]
    return total / n_labels


def best_of_row(measure, probability, chosen, row, k, positives=None):
    """Return the best value that any k labels of one row make, the other rows being as they are."""
    return max(
        expected(measure, probability, [*chosen[:row], list(labels), *chosen[row + 1 :]], positives)
        for labels in itertools.combinations(range(len(probability[0])), k)
    )
