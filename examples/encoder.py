"""What a sentence encoder adds to words: ``python examples/encoder.py train.jsonl dev.jsonl [ENCODER]``.

ENCODER is anything that ``longleaf.encoders.load`` takes, ``minilm`` by default. The two files are tables as
``longleaf train`` reads them, such as two that ``longleaf split`` wrote. Texts are embedded once: their
embeddings are kept on disk.
"""

import sys

import longleaf as ll
from longleaf.io.tables import read_table

WEIGHTS = (0.25, 0.5, 1.0)
METRICS = ("p@1", "p@5", "psp@5")


def main():
    """Compare words alone with words and meaning, by weight."""
    (texts, tags), (dev_texts, dev_tags) = (
        zip(*((record.content(), record.tags) for record in read_table(path)), strict=True)
        for path in sys.argv[1:3]
    )
    name = sys.argv[3] if len(sys.argv) > 3 else "minilm"
    encoder = ll.encoders.cached(ll.encoders.load(name))  # the texts of dev.jsonl are kept, too
    taggers = {"words": ll.Tagger(ll.PLT(random_state=1))}
    for weight in WEIGHTS:
        tagger = ll.Tagger(ll.PLT(random_state=1), encoder=encoder, encoder_weight=weight)
        taggers[f"{name} {weight:g}"] = tagger
    width = max(map(len, taggers))
    print(" " * width + "".join(f"{metric:>8}" for metric in METRICS))
    for title, tagger in taggers.items():
        tagger.fit(texts, tags)
        scores = [ll.metrics.make_scorer(metric)(tagger, dev_texts, dev_tags) for metric in METRICS]
        print(f"{title:{width}}" + "".join(f"{score:8.1f}" for score in scores), flush=True)


if __name__ == "__main__":
    main()
