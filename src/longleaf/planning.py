"""What a training will take, before it begins."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from longleaf._validation import LabelsLike, check_number
from longleaf.estimator import LabelEstimator
from longleaf.plt import PLT
from longleaf.training.memory import parse_memory
from longleaf.training.plan import SHARE, Level, Plan, plan_training

__all__ = ["Level", "Plan", "plan"]


def plan(
    X: Any,
    Y: LabelsLike,
    estimator: LabelEstimator | None = None,
    *,
    memory: str | int | None = None,
    share: float = SHARE,
) -> Plan:
    """Say what training will take: nodes, rows per level, peak memory, model size and time.

    One tree is built for real, and about a tenth of its training is done: some units of every level, or
    a unit on some of its rows where it is too large. Time and size are extrapolated from these by the cost of
    all units; memory is the sum of the arrays that training holds at its peak.

    Parameters
    ----------
    X, Y
        As for `longleaf.PLT.fit`.
    estimator : PLT or BR, optional
        Whose training is planned; ``PLT()`` by default. It is left as it is.
    memory : str or int, optional
        A limit, such as "4G". The plan is then for a training that stays within it, or a ValueError says why
        there is none.
    share : float
        How much of the training to do, from 0 to 1, divided by the number of trees.

    Examples
    --------
    >>> import longleaf as ll
    >>> from longleaf.datasets import make_hierarchy
    >>> X, Y = make_hierarchy(500, 2000, 100, random_state=1)
    >>> plan = ll.plan(X, Y, ll.PLT(n_trees=1, max_leaf=10, arity=4, random_state=1))
    >>> plan.nodes, [level.nodes for level in plan.levels]
    (121, [4, 16, 100])
    """
    job = (PLT() if estimator is None else clone(estimator))._job()
    limit = None if memory is None else parse_memory(memory)
    check_number(share, "share", low=0, high=1, open_low=True)
    data = job.check(X, Y, None)
    return plan_training(job, data, data.sizes(), limit, share)
