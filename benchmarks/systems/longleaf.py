"""longleaf through its public names."""

import pickle
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

import longleaf as ll
from benchmarks.systems import Options, System


class Longleaf(System):
    """``ll.PLT`` with the setting's arguments, or what ``estimator`` names: "BR", "BR.dismec" and so on."""

    distribution = "longleaf"

    def train(self, model: Path) -> None:
        """Fit."""
        params: Options = {name: tuple(v) if isinstance(v, list) else v for name, v in self.params.items()}
        make = attrgetter(params.pop("estimator", "PLT"))(ll)
        self.model = make(n_jobs=self.threads, **params).fit(self.X, self.Y)

    def save(self, model: Path) -> None:
        """Write the model folder."""
        self.model.save(model)

    def load(self, model: Path) -> None:
        """Map the model folder."""
        self.model = ll.load(model)

    def predict(self, X: sp.csr_matrix, k: int, threads: int, options: Options) -> Any:
        """Search; the options are those of ``top_k``."""
        self.model.n_jobs = threads
        return self.model.top_k(X, k=k, **options)

    def labels(self, answer: Any, k: int) -> npt.NDArray[np.int32]:
        """Return the label array as it is."""
        return np.asarray(answer.labels, np.int32)

    def evaluations(self, answer: Any) -> float | None:
        """Mean of the counts that the search reports."""
        counts = getattr(answer, "evaluations", None)
        return None if counts is None else float(np.mean(counts))


class Pickled(Longleaf):
    """An estimator that has no model folder."""

    def save(self, model: Path) -> None:
        """Pickle."""
        model.write_bytes(pickle.dumps(self.model))

    def load(self, model: Path) -> None:
        """Unpickle what `save` wrote a moment ago."""
        self.model = pickle.loads(model.read_bytes())
