"""Trains a tagger from raw records with one thing more at each step, and judges it on dev.

    python -m benchmarks.vocabulary [--data tib-sid] [--data eurlex57k] [--seed 1] [--rows N] [--step NAME]
                                    [--encoder minilm]

TIB-SID takes its names from vocabulary.tsv.xz, never from tag_names.json.xz, which has exactly the tags of
train and dev and so betrays which tags dev has. EURLEX57K has no other vocabulary: of its tag_names.json.xz
only the tags of train are used.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

import longleaf as ll
from benchmarks.data import source_folder
from longleaf.metrics import calibration, evaluate
from longleaf.search.auto_k import cut
from longleaf.suggest import Suggester
from longleaf.text.vectorizer import TextVectorizer

FIELDS = ("title", "text")
RARE = 5
RESULTS = Path(__file__).parent.parent / "results" / "vocabulary.json"


def records(folder: Path, split: str, rows: int | None) -> list[dict[str, Any]]:
    """Read the records of a split."""
    with lzma.open(folder / f"{split}.jsonl.xz", "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    if rows is None or rows >= len(found):
        return found
    chosen = np.random.RandomState(0).permutation(len(found))[:rows]
    return [found[i] for i in np.sort(chosen)]


def vocabulary(folder: Path, seen: set[str]) -> ll.TagNames:
    """Read the names that a user would have."""
    fair = folder / "vocabulary.tsv.xz"
    if fair.exists():
        return ll.read_names(fair)
    with lzma.open(folder / "tag_names.json.xz", "rt", encoding="utf-8") as file:
        names = json.load(file)
    return ll.TagNames.of({tag: name for tag, name in names.items() if tag in seen})


def contents(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the fields of records, and their language."""
    return [{name: row.get(name) or "" for name in (*FIELDS, "lang") if name in row} for row in rows]


class Joined(TextVectorizer):
    """Words of all fields as one text."""

    def settle_fields(self, texts: Any) -> tuple[dict[str, float], Any]:
        """Say that there are no fields."""
        return {}, texts


class OwnColumns(BaseEstimator):  # type: ignore[misc]
    """A vectorizer per field, whose columns stand side by side."""

    def fit_transform(self, records: list[dict[str, str]], y: object = None) -> Any:
        """Fit a vectorizer per field."""
        self.by_field_ = {name: TextVectorizer(n_jobs=2) for name in FIELDS}
        return sp.hstack(
            [v.fit_transform([r[f] for r in records]) for f, v in self.by_field_.items()]
        ).tocsr()

    def transform(self, records: list[dict[str, str]]) -> Any:
        """Vectorize each field by itself."""
        fields = self.by_field_.items()
        return sp.hstack([one.transform([record[f] for record in records]) for f, one in fields]).tocsr()


class Judge:
    """Figures of a tagger on dev."""

    def __init__(self, dev: list[dict[str, Any]]) -> None:
        self.dev = dev
        self.language = np.array([row.get("lang", "") for row in dev])

    def figures(self, tagger: ll.Tagger, texts: list[Any], plain: bool = False) -> dict[str, float]:
        """Judge a tagger; with ``plain`` the trees alone."""
        suggester: Suggester = tagger._suggester
        start = time.process_time()
        X = suggester.matrix(texts) if plain else suggester.rows(texts)
        vectorized = time.process_time()
        model = tagger.estimator_
        kept, model.score_map_ = model.score_map_, None if plain else model.score_map_
        try:
            top = model.top_k(X, 20)
            searched = time.process_time()
            model.top_k(X, 5)
            five = time.process_time()
            rare = model.top_k(X, 5, tail=1.0)
        finally:
            model.score_map_ = kept
        Y = tagger.transform_tags((row["tags"] for row in self.dev), unseen="add")
        counts = np.pad(model.label_counts_, (0, Y.shape[1] - model.n_labels_))
        q = ll.propensity.inverse_propensity_from_counts(counts, model.n_rows_)
        found = evaluate(Y, top, inverse_propensity=q, k=(1, 3, 5, 10, 20))
        tail = evaluate(Y, rare, inverse_propensity=q, k=(1, 3, 5))
        figures = {name: found[name] for name in ("p@1", "p@3", "p@5", "f1@5", "ndcg@20")}
        figures |= {name: found[name] for name in ("psp@1", "psp@3", "psp@5")}
        figures |= {f"tail 1 {name}": tail[name] for name in ("psp@1", "psp@3", "psp@5")}
        figures["rare recall@20"] = self._recall(Y, top.labels, (counts > 0) & (counts <= RARE))
        named = np.zeros(len(counts), bool)
        named[: model.n_labels_] = counts[: model.n_labels_] == 0
        figures["unseen named recall@20"] = self._recall(Y, top.labels, named)
        figures["unseen named assignments"] = float(Y[:, np.flatnonzero(named)].nnz)
        figures["ece@5"] = calibration(Y, top, k=5).ece
        auto = evaluate(Y, cut(top), k=20)
        figures["f1 auto"] = auto["f1@20"]
        for language in np.unique(self.language):
            if language:
                rows = np.flatnonzero(self.language == language)
                own = evaluate(Y[rows], top.labels[rows], k=(5, 20))
                figures |= {f"f1@5 {language}": own["f1@5"], f"ndcg@20 {language}": own["ndcg@20"]}
        n = len(self.dev) / 1000
        figures["ms to read a row"] = (vectorized - start) / n
        figures["ms to find 5"] = (five - searched) / n
        return figures

    @staticmethod
    def _recall(Y: Any, labels: np.ndarray, wanted: np.ndarray) -> float:
        true = Y[:, np.flatnonzero(wanted)].nnz
        usable = np.where((labels >= 0) & np.append(wanted, False)[labels], labels, -1)
        rows, places = np.nonzero(usable >= 0)
        hits = Y[rows, usable[rows, places]].sum() if len(rows) else 0.0
        return float(100.0 * hits / max(true, 1))


def steps(
    train: list[dict[str, Any]],
    dev: list[dict[str, Any]],
    names: ll.TagNames,
    seed: int,
    only: str | None,
    encoder: str | None = None,
) -> Any:
    """Yield the name and the figures of each step."""
    judge = Judge(dev)
    tags = [row["tags"] for row in train]
    languages = ["german", "english"] if "lang" in train[0] else ["english"]
    words = {"char_ngram_range": None}
    plan: list[tuple[str, Callable[[], Any], ll.TagNames | None]] = [
        ("words, fields joined", lambda: Joined(n_jobs=2), None),
        ("words, each field in columns of its own", OwnColumns, None),
        ("words, fields in the same columns", lambda: TextVectorizer.for_tags(n_jobs=2, **words), None),
        ("… and character 5-grams (default)", lambda: None, None),
        ("… and names (default with --names)", lambda: None, names),
        ("… and stems (--stem)", lambda: TextVectorizer.for_tags(n_jobs=2, stem=languages), names),
    ]
    if encoder is not None:
        plan += [("… and meaning, without names", lambda: None, None), ("… and meaning", lambda: None, names)]
    for name, vectorizer, known in plan:
        if only is not None and only not in name:
            continue
        start, cpu = time.perf_counter(), time.process_time()
        estimator = ll.PLT(random_state=seed, n_jobs=2)
        source = encoder if "meaning" in name else None
        tagger = ll.Tagger(estimator, vectorizer(), known, encoder=source).fit(contents(train), tags)
        cost = {"train cpu s": time.process_time() - cpu, "train s": time.perf_counter() - start}
        if known is not None and "stems" not in name and source is None:
            yield "… and name rows, trees alone", judge.figures(tagger, contents(dev), plain=True)
        yield name, judge.figures(tagger, contents(dev)) | cost


def main() -> None:
    """Run the steps on each data set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vocabulary", description=__doc__)
    parser.add_argument("--data", action="append")
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--step", help="part of the name of the only step to run")
    parser.add_argument("--encoder", help="also read what texts mean, by this encoder")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    found: list[dict[str, Any]] = []
    for data in given.data or ["tib-sid", "eurlex57k"]:
        folder = source_folder() / data
        train, dev = (records(folder, split, given.rows) for split in ("train", "dev"))
        names = vocabulary(folder, {tag for row in train for tag in row["tags"]})
        for seed in given.seed or [1, 2]:
            for name, figures in steps(train, dev, names, seed, given.step, given.encoder):
                found.append({"data": data, "seed": seed, "step": name, **figures})
                shown = {k: round(v, 2) for k, v in figures.items()}
                print(f"{data}, seed {seed}, {name}: {shown}", flush=True)
                given.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
