"""napkinXC: probabilistic label trees over LIBLINEAR."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from napkinxc.models import PLT

from benchmarks.systems import Options, System, pad


class NapkinXC(System):
    """napkinXC writes its model while it trains, so its training time includes that.

    Its ensembles read every tree from disk again in each call of ``predict`` (seen in the bytes read), which
    is what makes one row at a time so slow. Its other mode, ``ens_on_the_trot=False``, keeps the trees in
    memory, but crashed in the second call each time it was tried (0.7.2), so it cannot be measured here.
    """

    distribution = "napkinxc"

    def train(self, model: Path) -> None:
        """Fit on the CSR matrices."""
        self._plt(model, self.threads).fit(self.X, self.Y)

    def save(self, model: Path) -> None:
        """Do nothing: the model is on disk already."""

    def load(self, model: Path) -> None:
        """Load the weights."""
        self.model = self._plt(model, self.threads)
        self.model.load()

    def predict(self, X: sp.csr_matrix, k: int, threads: int, options: Options) -> Any:
        """Search each tree; ``options["gains"]`` are its label weights."""
        self.model.set_params(threads=threads)
        return self.model.predict(X, top_k=k, labels_weights=options.get("gains"))

    def labels(self, answer: Any, k: int) -> npt.NDArray[np.int32]:
        """Pad the lists."""
        return pad(answer, k)

    def _plt(self, model: Path, threads: int) -> PLT:
        return PLT(str(model), threads=threads, **self.params)
