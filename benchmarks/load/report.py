"""What the answers of a run come to: percentiles, the best of several runs, the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table

PERCENTILES = (50, 95, 99)
WARM_SECONDS = 0.5
"""What a closed loop does first and is not counted."""
Record = dict[str, Any]
COLUMNS = (
    ("requests/s", "requests_per_second", 0),
    ("texts/s", "texts_per_second", 0),
    *((f"p{one} ms", f"p{one}_ms", 2) for one in PERCENTILES),
    ("most ms", "most_ms", 1),
    ("failed", "failed", 0),
    ("CPU ms", "cpu_ms", 2),
    ("MiB", "memory_mib", 0),
    ("others' cores", "others_cores", 1),
)


def percentiles(latencies: npt.ArrayLike, name: str = "p{}_ms") -> dict[str, float]:
    """Give percentiles of seconds in milliseconds: values that occurred, never one between two."""
    values = np.asarray(latencies, np.float64)
    if not values.size:
        return {}
    found = np.percentile(values, PERCENTILES, method="higher")
    return {name.format(one): 1000 * float(value) for one, value in zip(PERCENTILES, found, strict=True)}


def summarize(sent: list[Record], texts: int, warm_seconds: float = 0.0) -> Record:
    """Sum up one run: latencies count from the moment that a request was due.

    Parameters
    ----------
    sent : list of dict
        `benchmarks.load.client.Sent` of each request, as it was printed.
    texts : int
        Texts a request.
    warm_seconds : float
        How much of the beginning does not count.
    """
    start = min(one["due"] for one in sent) + warm_seconds
    counted = [one for one in sent if one["due"] >= start]
    good = [one for one in counted if one["status"] == 200]
    if not good:
        return {"requests": len(counted), "failed": len(counted)}
    latency = np.array([one["end"] - one["due"] for one in good])
    rate = len(good) / (max(one["end"] for one in good) - start)
    return {
        "requests": len(counted),
        "failed": len(counted) - len(good),
        "requests_per_second": rate,
        "texts_per_second": rate * texts,
        **percentiles(latency),
        "most_ms": 1000 * float(latency.max()),
        "sent_late_p99_ms": percentiles([one["begin"] - one["due"] for one in counted])["p99_ms"],
    }


def best(records: list[Record]) -> list[Record]:
    """Keep the best run of each case: the least p99 at a fixed rate, else the most requests a second.

    Failed requests of the runs that are left out are told all the same, as ``failed_in_all``.
    """
    cases: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        case = tuple(record[name] for name in ("loop", "case", "system", "workers"))
        cases.setdefault(case, []).append(record)
    return [
        min(runs, key=_cost) | {"failed_in_all": sum(run["failed"] for run in runs), "runs": len(runs)}
        for runs in cases.values()
    ]


def _cost(record: Record) -> float:
    if "p99_ms" not in record:
        return np.inf
    return float(record["p99_ms"] if record["loop"] == "open" else -record["requests_per_second"])


def render(records: list[Record]) -> Table:
    """Give the table of a run."""
    table = Table(title="closed loop, then open loop; the best of the runs of each case")
    for heading in ("case", "system", "workers"):
        table.add_column(heading)
    for heading, _, _ in COLUMNS:
        table.add_column(heading, justify="right")
    previous = ""
    for record in sorted(best(records), key=lambda one: (one["loop"], one["place"])):
        if previous and record["case"] != previous:
            table.add_section()
        previous = record["case"]
        numbers = [
            "" if record.get(key) is None else f"{record[key]:,.{digits}f}" for _, key, digits in COLUMNS
        ]
        table.add_row(record["case"], record["system"], str(record["workers"]), *numbers)
    return table
