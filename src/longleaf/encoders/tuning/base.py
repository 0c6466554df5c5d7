"""The encoder from which fine-tuning starts, as PyTorch computes it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from longleaf._validation import ModelError, check_count
from longleaf.encoders.folder import CONFIG, TOKENIZER, WEIGHTS, ModelFolder, digest
from longleaf.encoders.loading import FEWEST_TOKENS, find_folder
from longleaf.encoders.tokens import Tokens
from longleaf.encoders.tuning.token_rows import TokenRows
from longleaf.encoders.weights import MODEL_TYPES, BertWeights

TEXTS_AT_ONCE = 256


@dataclass(frozen=True)
class Base:
    """A pretrained encoder in a folder.

    Attributes
    ----------
    name : str
        What it is called in messages.
    folder : ModelFolder
    max_tokens : int
        Where texts are cut.
    """

    name: str
    folder: ModelFolder
    max_tokens: int

    @classmethod
    def find(cls, source: str | os.PathLike[str], max_tokens: int) -> Self:
        """Find an encoder by name or folder, and check that its weights can be read."""
        name, path = find_folder(source)
        folder = ModelFolder.read(path)
        if folder.model_type not in MODEL_TYPES or not folder.is_plain:
            found = folder.model_type if folder.is_plain else f"{folder.model_type} with {folder.pooling}"
            raise ModelError(
                f"encoder {name} must be a transformer that longleaf can convert ({', '.join(MODEL_TYPES)}, "
                f"with pooling mean or cls); got {found}."
            )
        if not (path / WEIGHTS).is_file():
            raise ModelError(f"{path} must hold {WEIGHTS}; it does not.")
        positions = BertWeights(folder).n_positions
        return cls(name, folder, check_count(max_tokens, "max_tokens", low=FEWEST_TOKENS, high=positions))

    @property
    def fingerprint(self) -> str:
        """SHA-256 in hexadecimal of everything that decides what training starts from."""
        path = self.folder.path
        return digest(path / WEIGHTS, path / CONFIG, path / TOKENIZER, self.folder.pooling)

    def model(self) -> Any:
        """Return the encoder as a module of PyTorch, in float32 on the CPU."""
        import transformers

        path = self.folder.path
        try:
            with _quiet(transformers):
                model, found = transformers.AutoModel.from_pretrained(
                    path,
                    local_files_only=True,
                    use_safetensors=True,
                    add_pooling_layer=False,
                    output_loading_info=True,
                )
        except (RuntimeError, ValueError, OSError) as error:
            raise ModelError(
                f"{path} cannot be read by transformers: {' '.join(str(error).split())[:200]}."
            ) from None
        if found["missing_keys"]:
            raise ModelError(
                f"{path / WEIGHTS} must have a tensor {min(found['missing_keys'])}, as its config.json says; "
                "it has none."
            )
        return model.float()

    def tokens(self, texts: list[str], threads: int) -> TokenRows:
        """Return the token numbers of texts, as the encoder will read them when it is used."""
        tokenizer = Tokens(
            self.folder.path / TOKENIZER, self.max_tokens, self.folder.prompt, self.folder.lowercase
        )
        some = [texts[begin : begin + TEXTS_AT_ONCE] for begin in range(0, len(texts), TEXTS_AT_ONCE)]
        with ThreadPoolExecutor(threads, thread_name_prefix="longleaf-tokens") as pool:
            try:
                found = list(pool.map(lambda few: [tokenizer.ids(text) for text in few], some))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return TokenRows.of([ids for few in found for ids in few])


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Keep the library from printing what it loads."""
    log = transformers.utils.logging
    level, shown = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        if shown:
            log.enable_progress_bar()
