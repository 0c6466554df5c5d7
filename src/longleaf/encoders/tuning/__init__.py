"""Fine-tuning a sentence encoder on texts and tags, with PyTorch.

- `fine_tuning` is the function that people call, `run` does it, and `fine_tuned` is what it returns.
- `examples` are texts and tags, and what is held out of them.
- `base` is the encoder from which training starts, and `output` the folder that it writes.
- `network` and `training` compute, with `token_rows`, `loss`, `optimizers`, `row_adam`, `clock` and
  `surroundings`. They need PyTorch, NumPy and SciPy and nothing else of longleaf. `device` says where.
- `shortlist` picks the labels of a batch where there are too many, and `judge` measures on held-out texts.
- `checkpoint` keeps what is needed to resume; `extras` says what must be installed.

The libraries of the extra ``finetune`` are imported only when they are used.
"""

from longleaf.encoders.tuning.fine_tuned import Epoch, FineTuned
from longleaf.encoders.tuning.fine_tuning import fine_tune

__all__ = ["Epoch", "FineTuned", "fine_tune"]
