"""Make the sample inside the package from the whole of EURLEX57K: `python benchmarks/make_sample.py FOLDER`.

FOLDER holds `train.jsonl.xz`, `dev.jsonl.xz` and `tag_names.json.xz`. Laws lie in order of year, so they are
drawn at random, with a fixed seed: the same files always give the same sample. Laws to train on come from
train, laws to be judged by from dev. They stay whole and as they are; names are kept of the concepts that
occur. Nothing is chosen by how well a model does.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

SEED = 57
DRAWN = {"train": ("train", 4000), "test": ("dev", 1000)}
"""By part of the sample: the part of EURLEX57K that it is drawn from, and how many laws."""
FIELDS = ("id", "title", "text", "tags")
TARGET = Path(__file__).resolve().parents[1] / "src" / "longleaf" / "datasets"


def draw(source: Path, n_laws: int) -> list[dict[str, Any]]:
    """Give laws drawn at random, in their old order."""
    with lzma.open(source, "rt", encoding="utf-8") as file:
        lines = list(file)
    rows = np.sort(np.random.RandomState(SEED).choice(len(lines), n_laws, replace=False))
    return [json.loads(lines[row]) for row in rows]


def write(name: str, lines: Iterable[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    (TARGET / name).write_bytes(lzma.compress(text.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME))


def main() -> None:
    source = Path(sys.argv[1])
    tags: set[str] = set()
    for part, (drawn_from, n_laws) in DRAWN.items():
        laws = draw(source / f"{drawn_from}.jsonl.xz", n_laws)
        tags.update(tag for law in laws for tag in law["tags"])
        kept = ({field: law[field] for field in FIELDS} for law in laws)
        write(f"eurlex_{part}.jsonl.xz", (json.dumps(law, ensure_ascii=False) for law in kept))
    names = json.loads(lzma.decompress((source / "tag_names.json.xz").read_bytes()))
    named = {tag: names[tag] for tag in sorted(tags)}
    write("tag_names.json.xz", [json.dumps(named, ensure_ascii=False, indent=0)])


if __name__ == "__main__":
    main()
