"""The models of the load benchmark, trained once on EURLEX57K's laws, and the requests to them."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import longleaf as ll
from benchmarks import data

FOLDER = data.ROOT / "build" / "load"
PEER_PYTHON = data.ROOT / ".venv-load" / "bin" / "python"
SEEDS = (1, 2)
"""One model to serve, and another to reload."""
K, TAIL = 5, 1.0
SHUFFLE_SEED = 1


def read_laws(split: str) -> tuple[list[str], list[list[str]]]:
    """Give the laws of a split, title and text in one, and their tags."""
    path = data.source_folder() / "eurlex57k" / f"{split}.jsonl.xz"
    if not path.exists():
        raise FileNotFoundError(f"{path} must exist; set LONGLEAF_DATA to the folder of the data sets.")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        laws = [json.loads(line) for line in lines]
    return [f"{law['title']} {law['text']}" for law in laws], [law["tags"] for law in laws]


def longleaf_models(folder: Path = FOLDER) -> list[Path]:
    """Give the folders of longleaf's models, by its defaults; train those that are missing."""
    paths = [folder / f"laws-{seed}.ll" for seed in SEEDS]
    folder.mkdir(parents=True, exist_ok=True)
    if not all(path.exists() for path in paths):
        texts, tags = read_laws("train")
        with lzma.open(data.source_folder() / "eurlex57k" / "tag_names.json.xz", "rt") as file:
            names = json.load(file)
        for seed, path in zip(SEEDS, paths, strict=True):
            ll.Tagger(ll.PLT(random_state=seed), names=names).fit(texts, tags).save(path, force=True)
    return paths


def point_to(link: Path, target: Path) -> None:
    """Let a link name another model, in one step."""
    fresh = link.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    os.symlink(target.resolve(), fresh)
    fresh.replace(link)


def omikuji_model(tagger: ll.Tagger, folder: Path = FOLDER) -> Path:
    """Give the folder of omikuji's model; train it on the vectors of longleaf's vectorizer if missing."""
    target = folder / "omikuji"
    if target.exists():
        return target
    unfinished = folder / "omikuji.tmp"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    texts, tags = read_laws("train")
    vectorizer = tagger.vectorizer_
    ll.save_xmlc(unfinished / "train.txt", vectorizer.transform(texts), tagger.transform_tags(tags))
    (unfinished / "terms.json").write_text(json.dumps(vectorizer.get_feature_names_out().tolist()))
    (unfinished / "tags.json").write_text(json.dumps(tagger.classes_.tolist()))
    np.save(unfinished / "idf.npy", vectorizer.idf_)
    command = [PEER_PYTHON, "-m", "benchmarks.load.omikuji", unfinished]
    with open(folder / "omikuji-training.log", "wb") as log:
        subprocess.run([str(word) for word in command], cwd=data.ROOT, check=True, stdout=log, stderr=log)
    unfinished.rename(target)
    return target


def distinct_laws(unseen: list[str], seen: list[str], count: int) -> tuple[list[str], np.ndarray]:
    """Choose distinct laws in mixed order: the unseen ones first, laws of the training where they run out.

    Returns
    -------
    laws : list of str
    is_unseen : bool array [count]
    """
    if count > len(unseen) + len(seen):
        raise ValueError(f"count must be at most {len(unseen) + len(seen)} distinct laws; got {count}.")
    random = np.random.default_rng(SHUFFLE_SEED)
    more = random.choice(len(seen), max(0, count - len(unseen)), replace=False)
    pool = unseen[:count] + [seen[place] for place in more]
    order = random.permutation(count)
    return [pool[place] for place in order], order < len(unseen)


def write_bodies(path: Path, laws: list[str], texts: int, explain: bool) -> Path:
    """Write requests of so many laws each, one a line."""
    parts: Iterable[list[str]] = (
        laws[begin : begin + texts] for begin in range(0, len(laws) - texts + 1, texts)
    )
    asked = {"k": K, "tail": TAIL} | ({"explain": True} if explain else {})
    path.write_text("".join(json.dumps({"texts": part} | asked) + "\n" for part in parts))
    return path
