"""One measurement in a process of its own: ``python -m benchmarks.worker SPEC.json RESULT.json``.

It imports NumPy, SciPy and the one system that it measures, so that it runs in that system's environment.
"""

import importlib
import importlib.metadata
import json
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp

from benchmarks import measure
from benchmarks.systems import System

Spec = dict[str, Any]
PREDICT_RUNS = 5


def run(spec: Spec) -> dict[str, Any]:
    """Train, predict or do both as ``spec["task"]`` says; an exception becomes ``{"failed": reason}``."""
    try:
        if spec.get("memory_bytes"):
            measure.limit_memory(spec["memory_bytes"])
        module, name = spec["system"].split(":")
        kind: type[System] = getattr(importlib.import_module(module), name)
        system = kind(spec["params"], spec["threads"])
        result = {"train": train, "predict": predict, "both": both}[spec["task"]](system, spec)
        return result | {"versions": _versions(kind.distribution)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def train(system: System, spec: Spec) -> dict[str, Any]:
    """Train ``spec["repeat"]`` times: the best clocks, the first peak of memory; save the last model."""
    folder, model = Path(spec["data"]), Path(spec["model"])
    X, Y = (sp.csr_matrix(sp.load_npz(folder / f"train.{which}.npz")) for which in "XY")
    system.prepare(folder, X, Y)
    costs = [measure.measure(lambda: system.train(model))[1] for _ in range(spec["repeat"])]
    _, saving = measure.measure(lambda: system.save(model))
    return {
        "train_seconds": min(cost.seconds for cost in costs),
        "train_cpu_seconds": min(cost.cpu_seconds for cost in costs),
        "train_seconds_all": [cost.seconds for cost in costs],
        "peak_bytes": costs[0].peak_bytes,
        "process_peak_bytes": costs[0].process_peak_bytes,
        "save_seconds": saving.seconds,
        "model_bytes": measure.size_on_disk(model),
    }


def predict(system: System, spec: Spec) -> dict[str, Any]:
    """Load, predict all rows of dev in one call, then some of them one at a time in a single thread."""
    folder, k, options = Path(spec["data"]), spec["k"], dict(spec["options"])
    X = sp.csr_matrix(sp.load_npz(folder / "dev.X.npz"))
    if "gains" in options:
        options["gains"] = np.load(options["gains"])
    _, loading = measure.best_of(lambda: system.load(Path(spec["model"])), PREDICT_RUNS)
    answer, batch = measure.best_of(lambda: system.predict(X, k, spec["threads"], options), PREDICT_RUNS)
    np.save(spec["top"], system.labels(answer, k))
    rows = [X[row] for row in range(min(spec["single_rows"], X.shape[0]))]
    single = measure.least_mean(lambda row: system.predict(row, k, 1, options), rows, PREDICT_RUNS)
    return {
        "load_seconds": loading.seconds,
        "batch_ms": 1000 * batch.seconds / X.shape[0],
        "batch_cpu_ms": 1000 * batch.cpu_seconds / X.shape[0],
        "single_ms": 1000 * single.seconds,
        "single_cpu_ms": 1000 * single.cpu_seconds,
        "evaluations": system.evaluations(answer),
    }


def both(system: System, spec: Spec) -> dict[str, Any]:
    """Train once and ask in each of ``spec["searches"]``: one start of a process for all of them."""
    trained = train(system, spec)
    return trained | {"asked": [predict(system, spec | search) for search in spec["searches"]]}


def _versions(distribution: str) -> dict[str, str]:
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
    if distribution:
        versions[distribution] = importlib.metadata.version(distribution)
    return versions


def main() -> None:
    """Read the spec, run it and write the result."""
    spec_path, result_path = (Path(argument) for argument in sys.argv[1:])
    result_path.write_text(json.dumps(run(json.loads(spec_path.read_text()))))


if __name__ == "__main__":
    main()
