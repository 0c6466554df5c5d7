"""Training on a Dask cluster, to the same bits as on one machine.

`fit` trains on the rows that a session holds. `trees` clusters labels, a task per tree; `nodes` cuts all
trees into `tasks`, each of which gets only its rows; `blocks` has what a task does with a partition;
`sources` reads partitions, and `run` sees tasks through failures and limits of memory.
"""

from longleaf.training.cluster.fit import open_session as open_session
from longleaf.training.cluster.sources import column_names as column_names
