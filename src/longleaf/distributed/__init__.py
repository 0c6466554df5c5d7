"""The same training, prediction and evaluation on a Dask cluster. Needs the extra ``distributed``.

Rows are held in partitions on the workers; a task receives only what it needs. Scheduling, data
movement and recovery are Dask's. A model has the same bits as one that was trained on one machine.
"""

from importlib.util import find_spec

if find_spec("distributed") is None:
    raise ImportError(
        "longleaf.distributed needs the extra distributed, which is not installed: "
        "pip install 'longleaf[distributed]'."
    )

from longleaf.distributed._evaluate import evaluate
from longleaf.distributed._fit import fit
from longleaf.distributed._predict import iter_top_k, top_k
from longleaf.training.cluster.run import ClusterError

__all__ = ["ClusterError", "evaluate", "fit", "iter_top_k", "top_k"]
