"""A tiny encoder, and texts whose words are synonyms: what fine-tuning must find out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.encoders import SPECIAL, save_bert

TOPICS, SYNONYMS = 8, 6
WORDS = [f"w{topic}x{place}" for topic in range(TOPICS) for place in range(SYNONYMS)]
QUICK = {"epochs": 4, "max_tokens": 16, "batch_size": 32, "learning_rate": 4e-3}
"""Enough for the toy."""


def require_extra() -> None:
    """Skip a test, or a file of tests, without the libraries of the extra."""
    for module in ("torch", "transformers", "tokenizers", "safetensors"):
        pytest.importorskip(module, reason="needs the extra finetune")


def save_base(folder: Path, **sizes: object) -> Path:
    """Save a tiny encoder that knows the words but not what they mean."""
    return save_bert(folder, words=WORDS, vocab_size=len(SPECIAL) + len(WORDS), **sizes)


def toy(n_texts: int = 400, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Draw texts of four words of a topic, which is the tag, and one of any."""
    random = np.random.default_rng(seed)
    texts, tags = [], []
    for _ in range(n_texts):
        topic = int(random.integers(TOPICS))
        words = [f"w{topic}x{place}" for place in random.integers(SYNONYMS, size=4)]
        texts.append(" ".join(random.permutation([*words, WORDS[random.integers(len(WORDS))]])))
        tags.append([f"topic {topic}"])
    return texts, tags


@pytest.fixture
def one_thread():
    """Compute with one thread, since tests run side by side."""
    torch = pytest.importorskip("torch", reason="needs the extra finetune")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
