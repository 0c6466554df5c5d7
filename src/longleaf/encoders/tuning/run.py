"""From texts and tags to the folder of a fine-tuned encoder; see `fine_tune`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from longleaf import __version__
from longleaf._validation import DataError, check_threads
from longleaf.encoders.tuning.base import Base
from longleaf.encoders.tuning.checkpoint import data_digest, open_keeper
from longleaf.encoders.tuning.device import device_name, needed_bytes, pick_device
from longleaf.encoders.tuning.examples import Examples, Split, Tags, read_examples
from longleaf.encoders.tuning.fine_tuned import Epoch, FineTuned
from longleaf.encoders.tuning.judge import Judge
from longleaf.encoders.tuning.network import LabelNetwork
from longleaf.encoders.tuning.output import check_output, save_encoder
from longleaf.encoders.tuning.shortlist import LENGTH, Shortlists
from longleaf.encoders.tuning.token_rows import TokenRows
from longleaf.encoders.tuning.training import (
    Callbacks,
    LabelledTokens,
    Settings,
    Training,
    most_tokens,
)
from longleaf.propensity import inverse_propensity_from_counts
from longleaf.text.fields import Text
from longleaf.training.checkpoint import check_checkpoint

logger = logging.getLogger("longleaf.encoders.tuning")

MOST_LABELS_AT_ONCE = 50_000
"""With more labels, a batch is trained on shortlists unless ``negatives`` says otherwise."""

LONG = 600.0
"""Who waits for so many seconds is warned."""

Progress = Callable[[float], None] | None


@dataclass(frozen=True)
class Request:
    """The arguments of `fine_tune` but for the texts."""

    encoder: str | os.PathLike[str]
    output: Path
    force: bool
    checkpoint: Path | None
    device: str | None
    epochs: int
    max_tokens: int
    batch_size: int
    learning_rate: float
    dropout: float
    patience: int
    negatives: str
    seed: int

    @property
    def training(self) -> Settings:
        """Those of the training."""
        return Settings(self.epochs, self.batch_size, self.learning_rate, self.patience, self.seed)

    def described(self, base: Base) -> dict[str, Any]:
        """Return what the result depends on, beside the texts, as plain JSON."""
        names = (
            "epochs",
            "max_tokens",
            "batch_size",
            "learning_rate",
            "dropout",
            "patience",
            "negatives",
            "seed",
        )
        return {name: getattr(self, name) for name in names} | {
            "encoder": f"{base.name} {base.fingerprint[:16]}"
        }


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a network reads: training texts, and those that are held out."""

    train: LabelledTokens
    held_out: TokenRows
    truth: Any
    held_out_shortlist: Any

    def judge(self, tokens_at_once: int) -> Judge | None:
        """Return the judge; None if nothing is held out."""
        if not len(self.held_out):
            return None
        counts = np.bincount(self.train.Y.indices, minlength=self.truth.shape[1])
        gains = inverse_propensity_from_counts(counts, len(self.train.tokens))
        return Judge(self.held_out, self.truth, gains, tokens_at_once, self.held_out_shortlist)


def run(
    request: Request,
    texts: Iterable[Text],
    tags: Tags,
    validation: object,
    progress: Progress,
    report: Callable[[Epoch], None] | None,
) -> FineTuned:
    """Fine-tune an encoder, and write its folder."""
    check_output(request.output, request.force)
    if request.checkpoint is not None:
        check_checkpoint(request.checkpoint)
    device = pick_device(request.device)
    base = Base.find(request.encoder, request.max_tokens)
    split = read_examples(texts, tags, validation, request.seed)
    tokens = [base.tokens(some.texts, check_threads(-1)) for some in (split.train, split.held_out)]
    described = request.described(base)
    with ExitStack() as stack:
        keeper = None
        if request.checkpoint is not None:
            labels = (split.train.Y, split.held_out.Y)
            keeper = stack.enter_context(open_keeper(request.checkpoint, described, tokens, labels))
        prepared = _prepare(request, split, tokens)
        network = _network(request, base, prepared.train.Y.shape[1])
        _announce(network, prepared, request, device)
        calls = Callbacks(
            judge=prepared.judge(most_tokens(device)),
            keeper=keeper,
            report=report,
            progress=progress,
            estimate=_warn_of_time if device.type == "cpu" else None,
        )
        training = Training(network.to(device), prepared.train, request.training, calls)
        history = _run(training, request)
    result = FineTuned(
        path=request.output,
        history=tuple(history),
        best=training.best,
        device=device_name(device),
        seconds=sum(epoch.seconds for epoch in history),
    )
    origin = _origin(base, described, prepared, result)
    save_encoder(request.output, base, network.encoder, origin, split.held_out.texts, request.force)
    return result


def _prepare(request: Request, split: Split, tokens: list[TokenRows]) -> Prepared:
    train, held_out = split.train, split.held_out
    by_lists = request.negatives == "tree" or (
        request.negatives == "auto" and train.Y.shape[1] > MOST_LABELS_AT_ONCE
    )
    lists = _shortlists(request, train, held_out) if by_lists else None
    return Prepared(
        LabelledTokens(tokens[0], train.Y, None if lists is None else lists.train),
        tokens[1],
        held_out.Y,
        None if lists is None else lists.validation,
    )


def _shortlists(request: Request, train: Examples, held_out: Examples) -> Shortlists:
    folder = None if request.checkpoint is None else request.checkpoint / "shortlist"
    return Shortlists.of(train.texts, train.Y, held_out.texts, seed=request.seed, checkpoint=folder)


def _network(request: Request, base: Base, n_labels: int) -> LabelNetwork:
    return LabelNetwork(
        base.model(), n_labels, pooling=base.folder.pooling, dropout=request.dropout, seed=request.seed
    )


def _run(training: Training, request: Request) -> list[Epoch]:
    import torch

    try:
        return training.run()
    except torch.cuda.OutOfMemoryError:
        raise DataError(
            f"The GPU has not enough memory for batches of {request.batch_size} texts of up to "
            f"{request.max_tokens} tokens; use a smaller batch_size or max_tokens."
        ) from None


def _announce(network: LabelNetwork, prepared: Prepared, request: Request, device: Any) -> None:
    data = prepared.train
    n_bytes = needed_bytes(network, data, request.training, device)
    logger.info(
        "%d texts and %d tags to train on, %d texts to judge; each step trains %s; about %s of memory on %s",
        len(data.tokens),
        data.Y.shape[1],
        len(prepared.held_out),
        "all tags" if data.shortlist is None else f"the tags of its texts and {LENGTH} more for each",
        f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB",
        device_name(device),
    )


def _warn_of_time(seconds: float) -> None:
    level = logging.WARNING if seconds >= LONG else logging.INFO
    logger.log(level, "Training takes about %s on this CPU; on a GPU, minutes.", in_words(seconds))


def in_words(seconds: float) -> str:
    """Return a long time as people say it.

    Examples
    --------
    >>> in_words(12_034), in_words(600), in_words(3)
    ('3 h 21 min', '10 min', '1 min')
    """
    minutes = max(1, round(seconds / 60))
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def _origin(base: Base, settings: dict[str, Any], prepared: Prepared, result: FineTuned) -> dict[str, Any]:
    """Return what longleaf.json says."""
    import torch
    import transformers

    train = prepared.train
    return {
        "format": "longleaf fine-tuned encoder",
        "format_version": 1,
        "versions": {
            "longleaf": __version__,
            "torch": str(torch.__version__),
            "transformers": transformers.__version__,
        },
        "base": {"name": base.name, "fingerprint": base.fingerprint},
        "settings": settings,
        "data": {
            "texts": len(train.tokens),
            "tags": int(train.Y.shape[1]),
            "held_out": len(prepared.held_out),
            "digest": f"sha256:{data_digest([train.tokens], [train.Y])}",
        },
        "device": result.device,
        "seconds": round(result.seconds, 1),
        "best": result.best,
        "history": [asdict(epoch) for epoch in result.history],
    }
