"""The study of the PS-PLT paper on every data set that is there: ``python -m benchmarks.paper``.

Five seeds, mean and standard error, in the paper's settings. Each cell (data set, method, seed) is measured
once and kept in ``benchmarks/results/paper``; a run that was stopped goes on where it was. The data sets lie
in ``LONGLEAF_DATA`` (or ``--root``): ``bibtex``, ``delicious``, ``eurlex57k``, ``tib-sid``, and the official
ones in folders of their names, EURLex-4K and so on.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import data, runner
from benchmarks.paper.methods import METHODS, entry
from benchmarks.paper.sets import CACHE, SETS, StudySet, folder_of, prepare
from benchmarks.paper.tables import write_tables
from benchmarks.records import commit, machine, save
from benchmarks.settings import Entry
from longleaf import DataError
from longleaf.datasets import OFFICIAL
from longleaf.datasets.official import where_to_put

RESULTS = data.RESULTS / "paper"
SEEDS = (1993, 2021, 2029, 2047, 2077)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", choices=SETS, help="all that are there, if left out")
    parser.add_argument("--method", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seed", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--quick", action="store_true", help="only the first seed")
    parser.add_argument("--tables-only", action="store_true", help="write the tables of what is measured")
    parser.add_argument("--root", type=Path, default=data.source_folder(), help="the folder of the data sets")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--cache", type=Path, default=CACHE, help="where converted data sets are kept")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=86400.0, help="seconds for one training")
    return parser.parse_args()


def main() -> None:
    options, console = arguments(), Console()
    seeds = options.seed[:1] if options.quick else options.seed
    if not options.tables_only:
        for study in _present(options, console):
            try:
                for method in options.method:
                    for seed in seeds:
                        measure_cell(options, console, study, method, seed)
            except DataError as error:  # a bad folder must not keep the other sets from being measured
                console.log(f"{study.name} is left out: {error}", markup=False)
    for path in write_tables(options.results):
        console.print(f"Saved as {path}", soft_wrap=True)


def _present(options: argparse.Namespace, console: Console) -> list[StudySet]:
    """Return the data sets to run; say where the others belong."""
    present = []
    for name in options.data or SETS:
        if folder_of(SETS[name], options.root) is not None:
            present.append(SETS[name])
        elif name in OFFICIAL:
            console.log(where_to_put(name, options.root))
        else:
            console.log(f"{name} is not there: it belongs into {options.root / name.lower()}.")
    return present


def measure_cell(
    options: argparse.Namespace, console: Console, study: StudySet, method: str, seed: int
) -> None:
    """Measure one cell unless it is kept; one that failed or had other settings is measured again."""
    measured = entry(method, study, seed)
    path = options.results / study.name / f"{method}-{seed}.json"
    if path.exists() and _is_good(json.loads(path.read_text()), measured):
        return
    console.log(f"{study.name}: {method}, seed {seed}")
    folder = prepare(study, options.root, options.cache)
    job = runner.Job(
        study.name,
        folder,
        options.cache.parent / "paper-models",
        threads=options.threads,
        timeout=options.timeout,
        single_rows=1,
        constants=study.constants,
    )
    begun = datetime.now(UTC)
    cell = {
        "data": study.name,
        "method": method,
        "seed": seed,
        "params": measured.params,
        "judged_on": study.judged_on,
        "date": begun.isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "threads": options.threads,
        "records": list(runner.measure_together(job, measured)),
    }
    for record in cell["records"]:
        if "failed" in record:
            console.log(f"[red]{record['failed']}[/red]", markup=True)
    save(path, cell)


def _is_good(kept: dict[str, Any], measured: Entry) -> bool:
    same = kept["params"] == measured.params
    return same and not any("failed" in record for record in kept["records"])
