"""Words and a sentence encoder side by side: ``python examples/encoder.py train.jsonl dev.jsonl``.

The encoder is WordLlama (``pip install wordllama``), whose package ships its 256-dimensional model: nothing
is downloaded. Any other encoder works the same way: a function from a list of texts to an array of numbers.
The two files are tables as ``longleaf train`` reads them, such as two that ``longleaf split`` wrote.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import wordllama
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

import longleaf as ll
from longleaf.io.tables import read_table


@cache
def model():
    """Load the model from inside its package, once."""
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def encode(texts):
    """Turn texts into float32 [texts, 256]."""
    return model().embed(list(texts)).astype(np.float32)


def words_and_meaning(weight):
    """Return both blocks at unit length, the encoder's times ``weight``, so that neither dominates."""
    return FeatureUnion(
        [
            ("words", ll.TextVectorizer(n_jobs=-1)),
            ("meaning", make_pipeline(FunctionTransformer(encode), Normalizer())),
        ],
        transformer_weights={"meaning": weight},
    )


def main():
    """Compare words alone, the encoder alone, and both."""
    (texts, tags), (dev_texts, dev_tags) = (
        zip(*((record.text, record.tags) for record in read_table(path)), strict=True)
        for path in sys.argv[1:3]
    )
    vectorizers = {
        "words": ll.TextVectorizer(n_jobs=-1),
        "encoder": FunctionTransformer(encode),
        "both": words_and_meaning(0.3),
    }
    metrics = ("p@1", "p@5", "psp@5")
    print(f"{'':10}" + "".join(f"{metric:>8}" for metric in metrics))
    for name, vectorizer in vectorizers.items():
        tagger = ll.Tagger(ll.PLT(random_state=1), vectorizer).fit(texts, tags)
        scores = [ll.metrics.make_scorer(metric)(tagger, dev_texts, dev_tags) for metric in metrics]
        print(f"{name:10}" + "".join(f"{score:8.1f}" for score in scores), flush=True)


if __name__ == "__main__":
    main()
