"""The folder of a fine-tuned encoder, as sentence-transformers and `longleaf.encoders.load` read it."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from longleaf._validation import ModelError, ModelExistsError
from longleaf.encoders.folder import CONFIG, MEAN, TOKENIZER, WEIGHTS
from longleaf.encoders.held_out import write_held_out
from longleaf.encoders.tuning.base import Base
from longleaf.io._replace import publish, remove_leftovers, staging_folder, sync_directory

ORIGIN = "longleaf.json"
POOLING = "1_Pooling"
COPIED = (
    "config_sentence_transformers.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "sentencepiece.bpe.model",
)
"""Files of the base that other libraries read."""


def check_output(path: Path, force: bool) -> None:
    """Reject, before any work, a folder that could not be written."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise ModelError(f"The encoder's parent folder must exist; got {path}.")
    if not os.path.lexists(target):
        return
    if not force:
        raise ModelExistsError(f"{path} already exists; choose another path or replace it with force.")
    if not (target / ORIGIN).is_file():
        raise ModelExistsError(f"Only a fine-tuned encoder can be replaced: {path} has no {ORIGIN}.")


def save_encoder(
    path: Path, base: Base, model: Any, origin: dict[str, Any], held_out: Sequence[str], force: bool
) -> None:
    """Write the folder beside its destination and move it there in one step.

    Parameters
    ----------
    path : Path
    base : Base
        Whose tokenizer and settings it has.
    model : transformers.PreTrainedModel
        Its weights.
    origin : dict
        The content of longleaf.json.
    held_out : sequence of str
        The texts that it was not trained on.
    force : bool
        Whether a fine-tuned encoder may be replaced.
    """
    target = Path(os.path.realpath(path))
    with staging_folder(target) as staging:
        _write(staging, base, model, origin)
        if held_out:
            write_held_out(staging, held_out)
        check_output(path, force)
        try:
            publish(staging, target, replace=force)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise ModelExistsError(f"{path} was created while it was being written.") from None
            raise
    remove_leftovers(target)


def _write(folder: Path, base: Base, model: Any, origin: dict[str, Any]) -> None:
    from safetensors.torch import save

    source = base.folder
    (folder / POOLING).mkdir()
    for name in COPIED:
        if (source.path / name).is_file():
            shutil.copyfile(source.path / name, folder / name)
    tensors = {name: one.detach().cpu().contiguous() for name, one in model.state_dict().items()}
    (folder / WEIGHTS).write_bytes(save(tensors, metadata={"format": "pt"}))
    config = {name: value for name, value in source.config.items() if name not in ("torch_dtype", "dtype")}
    _write_json(folder / CONFIG, config | {"dtype": "float32"})
    _write_json(folder / TOKENIZER, _tokenizer(source.path / TOKENIZER, base.max_tokens))
    _write_json(
        folder / "sentence_bert_config.json",
        {"max_seq_length": base.max_tokens, "do_lower_case": source.lowercase},
    )
    _write_json(folder / "modules.json", _modules())
    _write_json(
        folder / POOLING / CONFIG,
        {
            "word_embedding_dimension": int(model.config.hidden_size),
            "pooling_mode_cls_token": source.pooling != MEAN,
            "pooling_mode_mean_tokens": source.pooling == MEAN,
        },
    )
    _write_json(folder / ORIGIN, origin)
    for one in folder.rglob("*"):
        _sync(one)
    sync_directory(folder / POOLING)
    sync_directory(folder)


def _tokenizer(path: Path, max_tokens: int) -> dict[str, Any]:
    """Return the tokenizer, which cuts texts where they were cut in training, and pads none."""
    tokenizer: dict[str, Any] = json.loads(path.read_text("utf-8"))
    cut = {"direction": "Right", "strategy": "LongestFirst", "stride": 0}
    return tokenizer | {"truncation": cut | {"max_length": max_tokens}, "padding": None}


def _modules() -> list[dict[str, Any]]:
    kinds = (("Transformer", ""), ("Pooling", POOLING))
    return [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (kind, path) in enumerate(kinds)
    ]


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n", "utf-8")


def _sync(path: Path) -> None:
    if path.is_file():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
