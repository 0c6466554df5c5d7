"""``python -m benchmarks.encoders.speed``: how fast the packaged encoder is, and how near to full precision.

Embeds texts of TIB-SID. "As they are" is title and abstract, cut to 128 tokens; the others are texts joined
until they have all of 64, 128 or 256 tokens. Speed is the best of several runs. With torch and transformers
installed, embeddings are compared with those of the model in float32. Writes
``benchmarks/results/encoders-speed.json``.
"""

import argparse
import importlib
import importlib.metadata
import json
import lzma
import time
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from packaging.requirements import Requirement
from rich.console import Console
from rich.table import Table

from benchmarks.data import RESULTS, ROOT, source_folder
from benchmarks.records import commit, machine, save
from longleaf import encoders
from longleaf.encoders.extras import needed
from longleaf.encoders.loading import minilm_folder

LENGTHS = (64, 128, 256)
USUAL_LENGTH = 128
JOINED = 6
"""So many records together have more than 256 tokens."""
REPEATS = 3
SINGLE_TEXTS = 20


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=300, help="how many texts are embedded")
    parser.add_argument("--json", type=Path, default=RESULTS / "encoders-speed.json")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    texts = sampled(options.texts)
    joined = [" ".join(texts[(place + n) % len(texts)] for n in range(JOINED)) for place in range(len(texts))]
    rows = [measured("as they are", texts, USUAL_LENGTH)]
    rows += [measured(f"{length} tokens", joined, length) for length in LENGTHS]
    installed = {name: installed_bytes(name) for name in added_packages()}
    save(
        options.json,
        {
            "commit": commit(),
            "machine": machine(),
            "versions": {name: importlib.metadata.version(name) for name in installed},
            "rows": rows,
            "installed_bytes": installed,
        },
    )
    show(rows, installed)


def sampled(number: int) -> list[str]:
    """Return title and abstract of some records, drawn by a seed."""
    with lzma.open(source_folder() / "tib-sid" / "dev.jsonl.xz", "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    chosen = np.random.default_rng(0).choice(len(records), number, replace=False)
    return [f"{records[place]['title']} {records[place]['text']}" for place in chosen]


def measured(name: str, texts: list[str], max_tokens: int) -> dict[str, Any]:
    """Return the speeds on texts, and their nearness to full precision if that can be computed."""
    encoder = encoders.load("minilm", max_tokens=max_tokens)
    vectors = encoder.embed(texts)
    one = float(np.median([best(partial(encoder.embed, [text])) for text in texts[:SINGLE_TEXTS]]))
    row: dict[str, Any] = {
        "texts": name,
        "per_second_1": len(texts) / best(lambda: encoder.embed(texts, threads=1)),
        "per_second_2": len(texts) / best(lambda: encoder.embed(texts, threads=2)),
        "ms_for_one": 1e3 * one,
    }
    exact = full_precision(texts, max_tokens)
    if exact is not None:
        cosines = (vectors * exact).sum(axis=1)
        row |= {"cosine_mean": float(cosines.mean()), "cosine_min": float(cosines.min())}
    return row


def best(call: Callable[[], Any]) -> float:
    return min(seconds(call) for _ in range(REPEATS))


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def full_precision(texts: list[str], max_tokens: int) -> npt.NDArray[np.float32] | None:
    """Return the embeddings in float32; None without torch and transformers."""
    try:
        torch, transformers = (importlib.import_module(name) for name in ("torch", "transformers"))
    except ImportError:
        return None
    folder = minilm_folder()
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = needed("tokenizers", "This").Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    with torch.no_grad():
        states = [
            model(input_ids=torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0] for text in texts
        ]
    vectors = np.array([state.mean(0).numpy() for state in states])
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def added_packages() -> list[str]:
    """Return what the extra installs beside longleaf and what that needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extra = _with_requirements(project["optional-dependencies"]["encoder"])
    return sorted(extra - _with_requirements(project["dependencies"]))


def installed_bytes(name: str) -> int:
    """Return the bytes of an installed package, without what Python compiles."""
    files = importlib.metadata.files(name) or []
    paths = [Path(str(file.locate())) for file in files if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file())


def _with_requirements(lines: list[str], known: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the names of packages and of all that they require, directly or not."""
    for line in lines:
        wanted = Requirement(line)
        name = wanted.name.lower().replace("_", "-")
        needs = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        if needs and name not in known:
            known = _with_requirements(importlib.metadata.requires(name) or [], known | {name})
    return known


def show(rows: list[dict[str, Any]], installed: dict[str, int]) -> None:
    table = Table("texts", "a second, 1 thread", "2 threads", "ms for one", "cosine: mean", "least")
    for row in rows:
        cosines = [f"{row[name]:.4f}" if name in row else "-" for name in ("cosine_mean", "cosine_min")]
        speeds = [f"{row[name]:.0f}" for name in ("per_second_1", "per_second_2")]
        table.add_row(row["texts"], *speeds, f"{row['ms_for_one']:.1f}", *cosines)
    console = Console()
    console.print(table)
    sizes = ", ".join(f"{name} {size / 1e6:.0f} MB" for name, size in installed.items())
    console.print(f"The extra adds {sum(installed.values()) / 1e6:.0f} MB: {sizes}")


if __name__ == "__main__":
    main()
