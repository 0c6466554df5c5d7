"""The peer of the load benchmark: omikuji behind a plain FastAPI app, as its user would write one.

``python -m benchmarks.load.omikuji FOLDER`` trains; ``uvicorn benchmarks.load.omikuji:create_app --factory``
serves the folder that ``LOAD_OMIKUJI`` names. Texts become vectors by scikit-learn's ``TfidfVectorizer`` with
the vocabulary and the weights of longleaf's vectorizer, so both models see the same vectors.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import omikuji
import scipy.sparse as sp
from fastapi import FastAPI
from pydantic import BaseModel
from sklearn.feature_extraction.text import TfidfVectorizer

BEAM = 10
THREADS = 2
MODEL, ROWS, TERMS, IDF, TAGS = "model.omikuji", "train.txt", "terms.json", "idf.npy", "tags.json"


class Asked(BaseModel):
    """A request; omikuji knows no gains, so ``tail`` is heard and does nothing."""

    texts: list[str]
    k: int = 5
    tail: float = 0.0


def make_vectorizer(folder: Path) -> TfidfVectorizer:
    """Give a vectorizer with the terms and weights that were learned elsewhere."""
    terms = json.loads((folder / TERMS).read_text())
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32, vocabulary=terms)
    vectorizer.idf_ = np.load(folder / IDF).astype(np.float32)
    return vectorizer


def create_app() -> FastAPI:
    """Make the application of one worker."""
    folder = Path(os.environ["LOAD_OMIKUJI"])
    model = omikuji.Model.load(str(folder / MODEL))
    vectorizer, tags = make_vectorizer(folder), json.loads((folder / TAGS).read_text())
    app = FastAPI()

    def suggest_row(row: sp.csr_matrix, k: int) -> dict[str, Any]:
        pairs = zip(row.indices.tolist(), row.data.tolist(), strict=True)
        found = model.predict(pairs, beam_size=BEAM, top_k=k)
        return {"suggestions": [{"tag": tags[label], "score": score} for label, score in found]}

    def suggest(asked: Asked) -> dict[str, Any]:
        X = vectorizer.transform(asked.texts)
        return {"results": [suggest_row(X[[row]], asked.k) for row in range(X.shape[0])]}

    app.post("/v1/suggest")(suggest)
    return app


def train(folder: Path) -> None:
    """Train with omikuji's defaults: 3 balanced binary trees, squared hinge, C=1."""
    hyper_param = omikuji.Model.default_hyper_param()
    model = omikuji.Model.train_on_data(str(folder / ROWS), hyper_param, THREADS)
    model.save(str(folder / MODEL))


if __name__ == "__main__":
    train(Path(sys.argv[1]))
