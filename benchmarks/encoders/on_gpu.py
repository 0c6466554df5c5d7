"""Fine-tune an encoder on a machine with a GPU where longleaf's extension is not built.

    python -m benchmarks.encoders.on_gpu prepare ../shared/data/tib-sid tokens   # where longleaf is built
    python benchmarks/encoders/on_gpu.py train tokens -o tuned                   # with PyTorch, transformers

``prepare`` writes the token numbers and labels of train.jsonl.xz and dev.jsonl.xz as .npy files, and copies
the folder of the base encoder. ``train`` runs the training of `longleaf.encoders.fine_tune` on them, prints
each epoch, judged on 2,000 training texts that are held out, then the figures of the output layer on the
texts of dev, and writes the encoder's weights and the embeddings of all texts (float16, train.npy, dev.npy).
"""

from __future__ import annotations

import argparse
import importlib.machinery
import json
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

SOURCE = Path(__file__).resolve().parents[2] / "src" / "longleaf"
SPLITS = ("train", "dev")
HELD_OUT = 2000
Ints = npt.NDArray[np.int64]


def prepare(data: Path, out: Path, base: str, max_tokens: int) -> None:
    """Write tokens, labels and the base encoder."""
    from longleaf.encoders.tuning.base import Base
    from longleaf.io.tables import read_table
    from longleaf.text.meaning import embedded_text
    from longleaf.text.tags import TagCollector

    encoder = Base.find(base, max_tokens)
    shutil.copytree(encoder.folder.path, out / "base", dirs_exist_ok=True)
    collector = TagCollector()
    for split in SPLITS:
        with read_table(data / f"{split}.jsonl.xz") as records:
            rows = [(embedded_text(record.content(), list(record.fields)), record.tags) for record in records]
        tokens = encoder.tokens([text for text, _ in rows], 2)
        labels = TagCollector(collector.tags)
        for _, tags in rows:
            labels.add(tags)
        collector = labels
        Y = labels.indicator()
        arrays = {"ids": tokens.ids, "offsets": tokens.offsets, "labels": Y.indices, "ends": Y.indptr}
        for name, array in arrays.items():
            np.save(out / f"{split}-{name}.npy", array)
        print(f"{split}: {len(rows)} texts, {len(tokens.ids)} tokens, {Y.shape[1]} labels so far")


def stand_in() -> None:
    """Let modules of longleaf be imported without the extension, and without what needs it."""
    for name in ("", ".encoders", ".encoders.tuning"):
        package = types.ModuleType(f"longleaf{name}")
        package.__path__ = [str(SOURCE.joinpath(*name.split(".")))]
        package.__spec__ = importlib.machinery.ModuleSpec(package.__name__, None, is_package=True)
        sys.modules[package.__name__] = package
    core: Any = types.ModuleType("longleaf._core")
    core.check_csr = lambda *arguments, **options: None
    vars(sys.modules["longleaf"])["_core"] = core
    sys.modules["longleaf._core"] = core


def load(folder: Path) -> dict[str, tuple[Any, Any]]:
    """Return tokens and labels of both splits; labels that training lacks come last."""
    from longleaf.encoders.tuning.token_rows import TokenRows

    found, n_labels = {}, 0
    for split in SPLITS:
        ids, offsets, labels, ends = (
            np.load(folder / f"{split}-{name}.npy") for name in ("ids", "offsets", "labels", "ends")
        )
        n_labels = max(n_labels, int(labels.max(initial=-1)) + 1)
        shape = (len(ends) - 1, n_labels)
        Y = csr_array((np.ones(len(labels), np.float32), labels, ends), shape=shape)
        found[split] = TokenRows(ids, offsets), Y
    return found


def train(folder: Path, out: Path, options: argparse.Namespace) -> None:
    """Train, judge and embed."""
    stand_in()
    import torch
    import transformers

    from longleaf.encoders.tuning.judge import Judge
    from longleaf.encoders.tuning.network import LabelNetwork, embed
    from longleaf.encoders.tuning.training import Callbacks, LabelledTokens, Settings, Training, most_tokens
    from longleaf.propensity._model import inverse_propensity_from_counts

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = load(folder)
    (tokens, Y), (dev, truth) = data["train"], data["dev"]
    order = np.random.default_rng(0).permutation(len(tokens))
    held_out, rows = np.sort(order[:HELD_OUT]), np.sort(order[HELD_OUT:])
    if options.texts:
        rows = rows[: options.texts]
    gains = inverse_propensity_from_counts(np.bincount(Y.indices, minlength=truth.shape[1]), len(tokens))
    judge = Judge(tokens.take(held_out), Y[held_out], gains[: Y.shape[1]], most_tokens(device))
    encoder = transformers.AutoModel.from_pretrained(folder / "base", add_pooling_layer=False).float()
    network = LabelNetwork(encoder, Y.shape[1], dropout=options.dropout, seed=options.seed).to(device)
    settings = Settings(
        options.epochs, options.batch_size, options.learning_rate, options.patience, options.seed
    )
    calls = Callbacks(judge=judge, report=lambda epoch: print(epoch, flush=True))
    training = Training(network, LabelledTokens(tokens.take(rows), Y[rows]), settings, calls)
    history = training.run()
    print("best", training.best, "seconds", round(sum(epoch.seconds for epoch in history), 1))
    print("dev", Judge(dev, truth, gains, most_tokens(device))(network), "(the layer of the last epoch)")
    out.mkdir(parents=True, exist_ok=True)
    encoder.save_pretrained(out / "encoder")
    for split, (some, _) in data.items():
        np.save(out / f"{split}.npy", embed(network, some, most_tokens(device)).astype(np.float16))
    settings_used = vars(options) | {"folder": str(folder), "out": str(out), "run": None}
    (out / "settings.json").write_text(json.dumps(settings_used))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    first = commands.add_parser("prepare")
    first.add_argument("data", type=Path)
    first.add_argument("out", type=Path)
    first.add_argument("--base", default="minilm")
    first.add_argument("--max-tokens", type=int, default=256)
    first.set_defaults(run=lambda given: prepare(given.data, given.out, given.base, given.max_tokens))
    second = commands.add_parser("train")
    second.add_argument("folder", type=Path)
    second.add_argument("-o", "--out", type=Path, required=True)
    for name, default in (
        ("epochs", 12),
        ("batch-size", 128),
        ("learning-rate", 2e-4),
        ("dropout", 0.2),
        ("patience", 3),
        ("seed", 1),
        ("texts", 0),
    ):
        second.add_argument(f"--{name}", type=type(default), default=default)
    second.set_defaults(run=lambda given: train(given.folder, given.out, given))
    given = parser.parse_args()
    given.run(given)


if __name__ == "__main__":
    main()
