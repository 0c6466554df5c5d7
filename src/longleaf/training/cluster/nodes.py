"""Training the nodes of all trees as tasks, each of which gets only its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf.training.cluster import blocks
from longleaf.training.cluster.run import Job, Run
from longleaf.training.cluster.tasks import MEMORY_SHARE, TASKS_PER_THREAD, NodeTask, plan_tasks, unit_costs
from longleaf.training.data import TrainingData
from longleaf.training.solver import NodeTrainer, SolverSettings, node_costs, positive_weights
from longleaf.training.store import Facts
from longleaf.training.trees import logger, warn_of_trouble
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.join import join_ranges

Trained: TypeAlias = "tuple[_core.WeightArrays, Facts]"
Costs: TypeAlias = "tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]"


@dataclass(frozen=True, eq=False)
class Problem:
    """All trees to train, and the partitions of the rows."""

    data: list[Any]
    total: blocks.Sizes
    settings: SolverSettings
    trees: list[LabelTree]
    seeds: list[int]


@dataclass(frozen=True, eq=False)
class _Shared:
    """Futures of what the tasks of one tree share; they go to each worker once."""

    tree: Any
    index: list[Any]  # per partition, the rows of each node
    costs: Any
    settings: Any


def train_tasks(run: Run, problem: Problem, progress: Callable[[float], None] | None) -> list[Trained]:
    """Train all tasks of all trees, the largest first; return weights and facts of each tree."""
    settings = run.keep("settings", problem.settings)
    shared, tasks = _prepare_trees(run, problem, settings)
    jobs = [
        Job(
            f"nodes {task.first_node} to {task.last_node - 1} of tree {task.tree}",
            task.need,
            partial(_submit_task, run, problem, shared[task.tree], task),
            task.work,
            task,
        )
        for task in sorted(tasks, key=lambda task: -task.work)
    ]
    threads = sum(worker.threads for worker in run.workers())
    done: list[dict[int, Trained]] = [{} for _ in problem.trees]
    whole, finished = sum(job.work for job in jobs), 0.0
    for job, result in run.stream(jobs, MEMORY_SHARE, 2 * max(threads, 1)):
        done[job.about.tree][job.about.first_node] = result
        finished += job.work
        if progress is not None:
            progress(finished / whole if whole else 1.0)
    return [_join(number, found, problem) for number, found in enumerate(done)]


def _prepare_trees(run: Run, problem: Problem, settings: Any) -> tuple[list[_Shared], list[NodeTask]]:
    """Count the rows of each node, and cut the trees into tasks by these counts."""
    kept = [run.keep("tree", tree) for tree in problem.trees]
    index = [[run.submit("index", blocks.index_nodes, one, tree) for one in problem.data] for tree in kept]
    counted = [
        run.reduce(
            "add",
            blocks.add,
            [run.submit("nodes", blocks.size_nodes, *pair) for pair in zip(problem.data, one, strict=True)],
        )
        for one in index
    ]
    node_sizes = run.gather(counted)
    workers = run.workers(MEMORY_SHARE)
    threads = sum(worker.threads for worker in workers)
    memory = min((worker.memory for worker in workers), default=0.0)
    costs = [unit_costs(*pair)[1].sum() for pair in zip(problem.trees, node_sizes, strict=True)]
    target = float(sum(costs)) / (max(threads, 1) * TASKS_PER_THREAD)
    shared = [
        _Shared(tree, one, run.submit("costs", _costs, tree, count, settings), settings)
        for tree, one, count in zip(kept, index, counted, strict=True)
    ]
    tasks = [
        task
        for number, pair in enumerate(zip(problem.trees, node_sizes, strict=True))
        for task in plan_tasks(number, *pair, problem.total, target, memory)
    ]
    return shared, tasks


def _costs(tree: LabelTree, node_sizes: blocks.Ints, settings: SolverSettings) -> Costs:
    return node_costs(tree, node_sizes[0], settings), positive_weights(tree, node_sizes[0], settings)


def _submit_task(
    run: Run, problem: Problem, shared: _Shared, task: NodeTask, workers: list[str] | None
) -> Any:
    """Let the workers choose the task's rows in each partition, and one of them train on these."""
    if task.families[0] == 0:  # the root has all rows
        held = problem.data
    else:
        pairs = zip(problem.data, shared.index, strict=True)
        held = [run.submit("select", blocks.rows_of_nodes, *pair, task.families) for pair in pairs]
    span = problem.seeds[task.tree], task.first_node, task.last_node
    return run.submit(
        "train",
        _train_nodes,
        shared.tree,
        shared.costs,
        shared.settings,
        span,
        *held,
        workers=workers,
    )


def _train_nodes(
    tree: LabelTree,
    costs: Costs,
    settings: SolverSettings,
    span: tuple[int, int, int],
    *held: TrainingData,
) -> Trained:
    """Train some nodes on their rows; the costs are those of all rows."""
    seed, first_node, last_node = span
    data = blocks.stack(held)
    trainer = NodeTrainer.prepare(
        data.rows, data.labels, tree, settings, seed=seed, row_weight=data.row_weight
    )
    trainer = replace(trainer, costs=costs[0], positive_weight=costs[1])
    return trainer.train(first_node, last_node, threads=1)


def _join(number: int, found: dict[int, Trained], problem: Problem) -> Trained:
    """Join the weights that the tasks of a tree trained, and sum what they took."""
    tasks = [found[first] for first in sorted(found)]
    facts = Counter[str]()
    for _, took in tasks:
        facts.update(took)
    total = {name: facts[name] for name in tasks[0][1]}
    logger.info("tree %d of %d: %d tasks, %s", number + 1, len(problem.trees), len(tasks), total)
    joined = join_ranges([weights for weights, _ in tasks])
    warn_of_trouble(number + 1, joined, total, problem.settings)
    return joined, total


def count(run: Run, name: str, function: Callable[..., Any], data: list[Any]) -> Any:
    """Return the future of counts over all partitions."""
    return run.reduce("add", blocks.add, [run.submit(name, function, one) for one in data])
