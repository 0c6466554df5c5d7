"""Sentence encoders: texts in, embeddings out, on any CPU and without torch.

- `loading` finds an encoder by name, folder or file; `folder` reads what its small files say, and `hub`
  downloads.
- `encoder` is what they all are; `session` runs a model with ONNX Runtime, `function` calls a function of the
  user's, `column` reads embeddings that records bring with them, and `sentence` uses sentence-transformers
  for architectures that are not converted here.
- `weights`, `quantize` and `graph` turn a BERT-like model into int8; `converted` keeps the result.
- `tokens` and `threads` are what `session` is made of.
- `components` makes columns of features of embeddings.
- `held_out` remembers the texts that fine-tuning held out.
- `cache` keeps embeddings on disk; `places` says where files are kept, `extras` what must be installed.
- `tuning` fine-tunes an encoder on texts and tags, with PyTorch.

The libraries of the extra ``encoder`` are imported only when they are used.
"""

from typing import TYPE_CHECKING, Any

from longleaf.encoders.cache import CachedEncoder, cache_size, cached, clear_cache
from longleaf.encoders.column import Column
from longleaf.encoders.encoder import Encoder
from longleaf.encoders.loading import load

if TYPE_CHECKING:
    from longleaf.encoders.tuning import FineTuned as FineTuned
    from longleaf.encoders.tuning import fine_tune as fine_tune

__all__ = ["CachedEncoder", "Column", "Encoder", "cache_size", "cached", "clear_cache", "load"]


def __getattr__(name: str) -> Any:
    """Load fine-tuning when somebody asks for it: it uses label trees, which nothing else here may import."""
    if name in ("FineTuned", "fine_tune"):
        from longleaf.encoders import tuning

        return getattr(tuning, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
