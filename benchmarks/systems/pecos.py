"""PECOS XR-Linear: one tree of sibling chunks, beam search."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

from benchmarks.systems import Options, System, pad


class Pecos(System):
    """PECOS as its own README calls it: label embedding, index, then the linear model."""

    distribution = "libpecos"

    def prepare(self, folder: Path, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        """Labels by column, as its loader for training gives them."""
        self.X, self.by_label = X, Y.tocsc()

    def train(self, model: Path) -> None:
        """Embed the labels, cluster them and train."""
        indexing = {name: self.params[name] for name in ("nr_splits", "max_leaf_size", "seed")}
        embedding = LabelEmbeddingFactory.create(self.by_label, self.X, method="pifa", threads=self.threads)
        chain = Indexer.gen(embedding, indexer_type="hierarchicalkmeans", threads=self.threads, **indexing)
        linear = {name: self.params[name] for name in ("nr_splits", "solver_type", "Cp", "Cn", "threshold")}
        self.model = XLinearModel.train(self.X, self.by_label, C=chain, threads=self.threads, **linear)

    def save(self, model: Path) -> None:
        """Write the model folder."""
        self.model.save(str(model))

    def load(self, model: Path) -> None:
        """Load for prediction only, which is its fast path."""
        self.model = XLinearModel.load(str(model), is_predict_only=True)

    def predict(self, X: sp.csr_matrix, k: int, threads: int, options: Options) -> Any:
        """Beam search."""
        return self.model.predict(X, beam_size=options["beam"], only_topk=k, threads=threads)

    def labels(self, answer: Any, k: int) -> npt.NDArray[np.int32]:
        """Sort each row of the CSR answer by score."""
        ranked = []
        for row in range(answer.shape[0]):
            part = slice(answer.indptr[row], answer.indptr[row + 1])
            ranked.append(answer.indices[part][np.argsort(-answer.data[part], kind="stable")].tolist())
        return pad(ranked, k)
