"""A sentence encoder with an output layer over labels; only the encoder is kept after training."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from longleaf.encoders.tuning.token_rows import TokenRows, in_order_of_length, pieces

Ints = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]

MEAN, CLS = "mean", "cls"
FIRST_BIAS = -8.0
"""Of the output layer: a label is rare, and the first steps need not learn that."""
FIRST_SCALE = 0.02
"""The standard deviation of the first weights of the output layer."""
LABELS_AT_ONCE = 1 << 16
"""How many labels are scored together where all are ranked."""
ROWS_AT_ONCE = 256
NONE = -1
"""In place of a label where there is none."""


class LabelNetwork(nn.Module):  # type: ignore[misc]
    """An encoder, pooling, dropout and a linear layer with a row of weights per label.

    Parameters
    ----------
    encoder : transformers.PreTrainedModel
    n_labels : int
    pooling : str
        "mean" or "cls".
    dropout : float
        Of the pooled vector.
    seed : int
        Of the first weights of the output layer.
    """

    def __init__(
        self, encoder: Any, n_labels: int, *, pooling: str = MEAN, dropout: float = 0.0, seed: int = 1
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.weight = nn.Parameter(torch.empty(n_labels, int(encoder.config.hidden_size)))
        self.bias = nn.Parameter(torch.full((n_labels,), FIRST_BIAS))
        nn.init.normal_(self.weight, std=FIRST_SCALE, generator=torch.Generator().manual_seed(seed))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.weight.device

    def pooled(self, tokens: TokenRows, rows: Ints) -> Tensor:
        """Return the vectors of some texts, float32 [texts, width]."""
        ids, mask = tokens.batch(rows, self.encoder.config.pad_token_id or 0, self.device)
        with autocast(self.device):
            hidden = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        if self.pooling == CLS:
            return hidden[:, 0]
        weights = mask.unsqueeze(-1).float()
        return (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)


def autocast(device: torch.device) -> Any:
    """Return a context that computes in bfloat16 on a GPU."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def log_odds(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the log-odds of labels by their rows of the output layer, float32 [texts, labels]."""
    with autocast(features.device):
        odds = nn.functional.linear(features, weight, bias)
    return odds.float()


def embed(network: LabelNetwork, tokens: TokenRows, most_tokens: int) -> npt.NDArray[np.float32]:
    """Return the vectors of texts, of unit length, [texts, width]."""
    network.eval()
    found = np.zeros((len(tokens), network.weight.shape[1]), np.float32)
    with torch.inference_mode():
        for rows in _batches(tokens, most_tokens):
            found[rows] = nn.functional.normalize(network.pooled(tokens, rows), dim=1).cpu().numpy()
    return found


def best_labels(
    network: LabelNetwork, tokens: TokenRows, k: int, most_tokens: int, shortlist: Labels | None = None
) -> Labels:
    """Return the k likeliest labels of each text by the output layer, best first, [texts, k].

    Parameters
    ----------
    network : LabelNetwork
    tokens : TokenRows
    k : int
    most_tokens : int
        How many tokens are read at once.
    shortlist : array of int32 [texts, m], optional
        The labels to rank for each text, and -1 where there are fewer; all labels by default.

    Returns
    -------
    array of int32 [texts, k]
        -1 where there are fewer labels.
    """
    network.eval()
    found = np.full((len(tokens), k), NONE, np.int32)
    with torch.inference_mode():
        for rows in _batches(tokens, most_tokens):
            features = network.pooled(tokens, rows)
            if shortlist is None:
                best = _best_of_all(network, features, k)
            else:
                best = _best_listed(network, features, k, shortlist[rows])
            found[rows, : best.shape[1]] = best
    return found


def _batches(tokens: TokenRows, most_tokens: int) -> list[Ints]:
    lengths = tokens.lengths()
    batches = in_order_of_length(lengths, ROWS_AT_ONCE)
    return [piece for rows in batches for piece in pieces(rows, lengths, most_tokens)]


def _best_of_all(network: LabelNetwork, features: Tensor, k: int) -> Labels:
    """Rank all labels, a range at a time, so that there is never a score for each of a million."""
    scores, labels = features.new_empty(len(features), 0), torch.empty(0, device=features.device)
    for begin in range(0, len(network.weight), LABELS_AT_ONCE):
        some = slice(begin, begin + LABELS_AT_ONCE)
        odds = log_odds(features, network.weight[some], network.bias[some])
        best = odds.topk(min(k, odds.shape[1]), dim=1)
        found = best.indices + begin
        joined = best.values if not begin else torch.cat([scores, best.values], 1)
        labels = found if not begin else torch.cat([labels, found], 1)
        scores, order = joined.topk(min(k, joined.shape[1]), dim=1)
        labels = labels.gather(1, order)
    best_of_all: Labels = labels.cpu().numpy().astype(np.int32)
    return best_of_all


def _best_listed(network: LabelNetwork, features: Tensor, k: int, listed: Labels) -> Labels:
    labels = np.unique(listed[listed >= 0]).astype(np.int64)
    if not len(labels):
        return np.full((len(listed), 0), NONE, np.int32)
    places = torch.from_numpy(labels).to(features.device)
    odds = log_odds(features, network.weight[places], network.bias[places])
    column = torch.from_numpy(np.searchsorted(labels, listed.clip(min=labels[0]))).to(features.device)
    absent = torch.from_numpy(listed < 0).to(features.device)
    own = odds.gather(1, column).masked_fill(absent, -torch.inf)
    best = own.topk(min(k, own.shape[1]), dim=1).indices.cpu().numpy()
    return np.take_along_axis(listed, best, axis=1).astype(np.int32)
