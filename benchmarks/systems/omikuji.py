"""omikuji: Parabel, Bonsai and AttentionXML-like trees in Rust."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import omikuji
import scipy.sparse as sp
from omikuji import ffi, lib

from benchmarks.systems import Options, System, pad


class Omikuji(System):
    """omikuji trains from a file and predicts one row a call."""

    distribution = "omikuji"

    def prepare(self, folder: Path, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        """Read the file by itself, which ``Model.train_on_data`` would do in one go with training."""
        self.pool = lib.init_omikuji_thread_pool(self.threads)
        self.data = lib.load_omikuji_data_set(
            ffi.new("char[]", str(folder / "train.txt").encode()), self.pool
        )
        if self.data == ffi.NULL:
            raise RuntimeError(f"omikuji must be able to read {folder / 'train.txt'}.")

    def train(self, model: Path) -> None:
        """Train with the defaults (squared hinge among them), overridden by the setting."""
        hyper_param = omikuji.Model.default_hyper_param()
        for name, value in self.params.items():
            setattr(hyper_param, name, value)
        self.model = omikuji.Model(lib.train_omikuji_model(self.data, hyper_param, self.pool))

    def save(self, model: Path) -> None:
        """Write the model folder."""
        self.model.save(str(model))

    def load(self, model: Path) -> None:
        """Load the model folder."""
        self.model = omikuji.Model.load(str(model))
        self.pool_threads = 0

    def predict(self, X: sp.csr_matrix, k: int, threads: int, options: Options) -> Any:
        """Loop over the rows.

        Threads either share the trees of each row (omikuji's own pool) or, with
        ``options["python_threads"]``, take rows in turn from a Python pool.
        """
        python_threads = options["python_threads"] and threads > 1
        own = 1 if python_threads else threads
        if own != self.pool_threads:
            self.model.init_prediction_thread_pool(own)
            self.pool_threads = own

        def predict_row(row: int) -> list[tuple[int, float]]:
            part = slice(X.indptr[row], X.indptr[row + 1])
            pairs = zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)
            found: list[tuple[int, float]] = self.model.predict(pairs, beam_size=options["beam"], top_k=k)
            return found

        if not python_threads:
            return [predict_row(row) for row in range(X.shape[0])]
        with ThreadPoolExecutor(threads) as executor:
            return list(executor.map(predict_row, range(X.shape[0])))

    def labels(self, answer: Any, k: int) -> npt.NDArray[np.int32]:
        """Drop the scores and pad."""
        return pad([[label for label, _ in row] for row in answer], k)
