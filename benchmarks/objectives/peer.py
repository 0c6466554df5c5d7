"""``python -m benchmarks.objectives.peer MATRIX OUT MEASURE METHOD K SEED``: xcolumns on probabilities.

Runs in an environment of its own. Saves the labels and prints the cost as JSON. Compilation by numba is not
counted: a small matrix is predicted first.
"""

import json
import sys
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse as sp
from xcolumns import block_coordinate, frank_wolfe, metrics

from benchmarks.measure import measure

COORDINATE = {
    "macro_f1": block_coordinate.predict_optimizing_macro_f1_score_using_bc,
    "macro_recall": block_coordinate.predict_optimizing_macro_recall_using_bc,
    "coverage": block_coordinate.predict_optimizing_coverage_using_bc,
}


def predict(matrix: Any, name: str, method: str, k: int, seed: int) -> Any:
    """Predict with the settings that xcolumns has by default.

    Frank-Wolfe gets the probabilities as labels, so that it knows no more than the other methods.
    """
    if method == "coordinate":
        return COORDINATE[name](matrix, k=k, seed=seed)
    goal = {"macro_f1": metrics.macro_f1_score_on_conf_matrix}[name]
    return frank_wolfe.find_classifier_using_fw(matrix, matrix, goal, k, skip_tn=True, seed=seed).predict(
        matrix, seed=seed
    )


def main() -> None:
    source, out, name, method, k, seed = sys.argv[1:]
    matrix: Any = sp.csr_matrix(sp.load_npz(source))
    predict(matrix[:20], name, method, int(k), int(seed))
    found, cost = measure(lambda: predict(matrix, name, method, int(k), int(seed)))
    found = sp.csr_matrix(found)
    found.eliminate_zeros()
    labels = np.full((matrix.shape[0], int(k)), -1, np.int32)
    for row in range(len(labels)):
        own = found.indices[found.indptr[row] : found.indptr[row + 1]][: int(k)]
        labels[row, : len(own)] = own
    np.save(out, labels)
    print(json.dumps(asdict(cost)))


if __name__ == "__main__":
    main()
