"""Fine-tuning a sentence encoder on texts and tags."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TypeAlias

from longleaf._validation import check_choice, check_count, check_flag, check_number, check_path
from longleaf.encoders.tuning.examples import Tags
from longleaf.encoders.tuning.extras import check_extra
from longleaf.encoders.tuning.fine_tuned import Epoch, FineTuned
from longleaf.text.fields import Text

StrPath: TypeAlias = str | os.PathLike[str]
Validation: TypeAlias = float | tuple[Iterable[Text], Tags]

AUTO, ALL, TREE = NEGATIVES = "auto", "all", "tree"
MOST_EPOCHS, LARGEST_BATCH, MOST_DROPOUT, MOST_SEED = 10_000, 1 << 16, 0.99, 2**32 - 1


def fine_tune(
    texts: Iterable[Text],
    tags: Tags,
    output: StrPath,
    *,
    encoder: StrPath = "minilm",
    epochs: int = 12,
    max_tokens: int = 256,
    batch_size: int = 128,
    learning_rate: float = 2e-4,
    dropout: float = 0.2,
    patience: int = 3,
    validation: Validation = 0.05,
    negatives: str = AUTO,
    seed: int = 1,
    device: str | None = None,
    checkpoint: StrPath | None = None,
    progress: Callable[[float], None] | None = None,
    report: Callable[[Epoch], None] | None = None,
    force: bool = False,
) -> FineTuned:
    """Fine-tune a sentence encoder, so that its embeddings tell tags apart.

    The encoder and a linear layer over all tags are trained together to predict the tags of a text; then the
    layer is thrown away. The result is a folder for `longleaf.encoders.load`, for ``ll.Tagger(encoder=...)``
    and for sentence-transformers.

    Parameters
    ----------
    texts : iterable of str or records
        The fields of a record are joined as sentences, as in ``ll.Tagger(encoder=...)``.
    tags : iterable of lists of str
    output : path
        The folder to write.
    encoder : str or path
        Where to start: "minilm", the folder of a model, or a name on the Hugging Face hub (owner/name).
    epochs : int
        Passes over the texts. The learning rate falls to zero over them, so fewer are not the first of more.
    max_tokens : int
        Longer texts are cut, here and when the encoder is used.
    batch_size : int
        Texts per step.
    learning_rate : float
        The largest one, of the encoder.
    dropout : float
        Share of a text's vector that is hidden from the layer over tags.
    patience : int
        Training ends when so many epochs in a row were no better than the best one, judged by the mean of p@k
        and psp@k, for k of 1, 3 and 5, of the layer over tags on the validation texts. The best is kept.
    validation : float or pair
        The share of the texts that is held out for validation, of at most 10,000 texts; a tagger with the
        encoder is then calibrated on these. Or a pair of texts and tags; or 0, then all epochs are trained
        and the last is kept.
    negatives : str
        "all": each step trains all tags. "tree": only the tags of its texts, and for each text the 60 that a
        label tree over words ranks highest, so that memory and time do not grow with the tags. "auto": the
        second with more than 50,000 tags.
    seed : int
        The same seed gives the same weights on the same machine and device.
    device : str, optional
        "cpu" or "cuda" (or "cuda:1"); a GPU by default, if there is one.
    checkpoint : path, optional
        A folder outside of ``output``. A training that was killed continues from there, and ends with the
        same weights.
    progress : callable, optional
        Called with the share of the steps that are done.
    report : callable, optional
        Called after each epoch with an `Epoch`.
    force : bool
        Whether to replace an encoder that an earlier call wrote to ``output``.

    Returns
    -------
    FineTuned
    """
    check_extra("Fine-tuning")
    from longleaf.encoders.tuning.run import Request, run

    request = Request(
        encoder=encoder,
        output=check_path(output, "output"),
        force=check_flag(force, "force"),
        checkpoint=None if checkpoint is None else check_path(checkpoint, "checkpoint"),
        device=device,
        epochs=check_count(epochs, "epochs", high=MOST_EPOCHS),
        max_tokens=max_tokens,
        batch_size=check_count(batch_size, "batch_size", high=LARGEST_BATCH),
        learning_rate=check_number(learning_rate, "learning_rate", low=0, high=1, open_low=True),
        dropout=check_number(dropout, "dropout", low=0, high=MOST_DROPOUT),
        patience=check_count(patience, "patience"),
        negatives=check_choice(negatives, "negatives", NEGATIVES),
        seed=check_count(seed, "seed", low=0, high=MOST_SEED),
    )
    return run(request, texts, tags, validation, progress, report)
