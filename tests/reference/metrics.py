"""Propensities and metrics. Rows are lists of labels; so are predictions, the best first, -1 for none."""

import math


def inverse_propensity(rows, n_labels, a, b):
    """Jain et al.'s model, label by label, as the formula is written."""
    c = (math.log(len(rows)) - 1) * (b + 1) ** a
    result = []
    for label in range(n_labels):
        count = sum(label in row for row in rows)
        result.append(max(1.0, 1 + c * math.exp(-a * math.log(count + b))))
    return result


def evaluate(rows, top, inverse_propensity=None, k=(1, 3, 5), normalize=True):
    """All metrics at every k, in percent."""
    result = {}
    for at in k:
        for name, value in ranking_metrics(rows, top, lambda label: 1.0, at).items():
            result[f"{name}@{at}"] = 100 * value
        for name, value in document_metrics(rows, top, at).items():
            result[f"{name}@{at}"] = 100 * value
        for name, value in label_metrics(rows, top, at).items():
            result[f"{name}@{at}"] = 100 * value
        if inverse_propensity is None:
            continue

        def gain(label):
            return inverse_propensity[label]

        best_top = [sorted(row, key=gain, reverse=True) for row in rows]
        best = ranking_metrics(rows, best_top, gain, at)
        for name, value in ranking_metrics(rows, top, gain, at).items():
            if normalize:
                value = value / best[name] if best[name] > 0 else 0.0
            result[f"ps{name}@{at}"] = 100 * value
    return result


def ranking_metrics(rows, top, gain, k):
    """Precision, recall and nDCG at k with a gain for every hit, averaged over rows."""
    precision = recall = ndcg = 0.0
    for row, predicted in zip(rows, top, strict=True):
        if not row:
            continue
        gained = discounted = 0.0
        for place, label in enumerate(predicted[:k], start=1):
            if label in row:
                gained += gain(label)
                discounted += gain(label) / math.log2(place + 1)
        ideal = sum(1 / math.log2(place + 1) for place in range(1, min(k, len(row)) + 1))
        precision += gained / k
        recall += gained / len(row)
        ndcg += discounted / ideal
    n = len(rows)
    return {"p": precision / n, "recall": recall / n, "ndcg": ndcg / n}


def document_metrics(rows, top, k):
    """Precision among the labels returned and F1, row by row, averaged over rows."""
    precision = f1 = 0.0
    for row, predicted in zip(rows, top, strict=True):
        returned = [label for label in predicted[:k] if label >= 0]
        hits = len(set(returned) & set(row))
        if hits:
            own, recall = hits / len(returned), hits / len(row)
            precision += own
            f1 += 2 * own * recall / (own + recall)
    return {"precision": precision / len(rows), "f1": f1 / len(rows)}


def label_metrics(rows, top, k):
    """Coverage and macro averages at k over the labels that some row has."""
    labels = sorted({label for row in rows for label in row})
    sums = {"coverage": 0.0, "macro_precision": 0.0, "macro_recall": 0.0, "macro_f1": 0.0}
    for label in labels:
        true, predicted, hits = label_counts(rows, top, k, {label})
        sums["coverage"] += hits > 0
        sums["macro_precision"] += hits / predicted if predicted else 0.0
        sums["macro_recall"] += hits / true
        sums["macro_f1"] += 2 * hits / (predicted + true)
    return {name: value / len(labels) if labels else 0.0 for name, value in sums.items()}


def label_counts(rows, top, k, labels):
    """Count true assignments, predictions at k and hits at k of a set of labels."""
    true = predicted = hits = 0
    for row, guesses in zip(rows, top, strict=True):
        true += sum(label in labels for label in row)
        predicted += sum(label in labels for label in guesses[:k])
        hits += sum(label in labels and label in row for label in guesses[:k])
    return true, predicted, hits


def frequency_bins(counts):
    """Labels of head, torso, tail and unseen: take whole groups of equal count until the share is reached.

    The group of the rarest labels is kept for the tail, and the group before it for the torso.
    """
    bins = {"head": set(), "torso": set(), "tail": set(), "unseen": set()}
    taken, groups = 0, sorted(set(counts) - {0})
    for count in sorted(set(counts), reverse=True):
        group = {label for label, other in enumerate(counts) if other == count}
        if count == 0:
            name = "unseen"
        elif count == groups[-1] or (2 * taken < sum(counts) and count not in groups[:2]):
            name = "head"
        elif count != groups[0] and (10 * taken < 8 * sum(counts) or not bins["torso"]):
            name = "torso"
        else:
            name = "tail"
        bins[name] |= group
        taken += count * len(group)
    return bins


def frequency_table(rows, top, counts, k):
    """Per bin: name, labels, least and most training rows, true pairs; then four shares in percent."""

    def percent(part, whole):
        return 100 * part / whole if whole else 0.0

    all_true = sum(len(row) for row in rows)
    table = []
    for name, labels in frequency_bins(counts).items():
        true, predicted, hits = label_counts(rows, top, k, labels)
        each = [label_counts(rows, top, k, {label}) for label in labels]
        occurring = sum(t > 0 for t, _, _ in each)
        covered = sum(h > 0 for _, _, h in each)
        inside = [counts[label] for label in labels] or [0]
        figures = (true, all_true), (hits, true), (hits, predicted), (covered, occurring)
        shares = (percent(*figure) for figure in figures)
        table.append((name, len(labels), min(inside), max(inside), true, *shares))
    return table
