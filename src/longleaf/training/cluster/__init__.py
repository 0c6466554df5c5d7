"""Training on a Dask cluster, to the same bits as on one machine.

`train` cuts all trees into `tasks`, each of which gets only its rows; `trees` clusters labels, a task per
tree; `blocks` has what a task does with a partition; `sources` reads partitions, and `run` sees tasks
through failures and limits of memory.
"""
