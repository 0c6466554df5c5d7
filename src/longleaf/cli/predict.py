"""``longleaf predict``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, Annotated, Any

import typer

from longleaf._validation import DataError
from longleaf.cli import _console, _options
from longleaf.cli._data import check_features_match, check_new_file, check_not_read, load_data
from longleaf.cli._filters import Filters
from longleaf.cli._lines import matrix_batches, text_batches, write_lines
from longleaf.cli._tables import check_form_matches, given, label_model, load_gains, open_table, report
from longleaf.estimator import LabelEstimator
from longleaf.io.names import read_names
from longleaf.io.streams import naming_what_is_full, open_replacing
from longleaf.io.tables import TableReader
from longleaf.models import load
from longleaf.tagger import Tagger, suggester_of

STANDARD_OUTPUT = "-"


def predict(
    model: _options.ModelPath,
    data: _options.DataPath,
    k: Annotated[int, typer.Option("-k", min=1, metavar="K", help="Labels per row.")] = 5,
    tail: _options.Tail = None,
    gain: _options.Gain = None,
    min_probability: _options.MinProbability = None,
    propensity: _options.Propensity = None,
    search: _options.SearchOption = _options.Search.exact,
    beam: _options.Beam = 10,
    threads: _options.Threads = None,
    text: _options.TextFields = None,
    names: _options.Names = None,
    only: _options.Only = None,
    never: _options.Never = None,
    groups: _options.Groups = None,
    show_words: Annotated[
        bool, typer.Option("--show-words", help="Also list the words that speak for each tag.")
    ] = False,
    strict: _options.Strict = False,
    out: Annotated[
        str,
        typer.Option(
            "-o",
            "--out",
            metavar="OUT",
            help="File to write; default: standard output.",
            callback=_options.not_empty,
        ),
    ] = STANDARD_OUTPUT,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write the best labels of each row of DATA as JSON, one line per row."""
    _options.check_one_dial(tail, gain)
    if [data, gain, only, never, groups].count("-") > 1:
        raise typer.BadParameter("Only one of DATA, --gain, --only, --never and --groups can be -.")
    if out != STANDARD_OUTPUT:
        check_not_read(out, data, gain, names, only, never, groups)
        check_new_file(out, force)
    elif sys.stdout is None:
        raise DataError("Standard output is closed; name a file with -o.")
    if propensity is not None and not tail:
        _console.note("--propensity has no effect here: it only applies to --tail.")
    loaded = load(model)
    trained = label_model(loaded)
    about_texts = given(text=text, names=names, strict=strict) | ({"show-words": True} if show_words else {})
    check_form_matches(data, loaded, about_texts)
    if names is not None and isinstance(loaded, Tagger):
        loaded.names = read_names(names)
    suggester = suggester_of(loaded)
    filters = Filters.read(suggester.tags, only=only, never=never, groups=groups, strict=strict)
    query = suggester.query(
        k,
        tail=tail,
        gain=None if gain is None else load_gains(gain, suggester),
        min_probability=min_probability,
        propensity=_options.parse_propensity(propensity, trained),
        **vars(filters),
        explain=show_words,
        search=search.value,
        beam=beam,
        n_jobs=threads,
    )
    with ExitStack() as stack:
        reader: TableReader | None = None
        if isinstance(loaded, Tagger):
            fields = loaded.fields_ | given(text=text) | {"tags": None}
            reader = stack.enter_context(open_table(data, fields, strict=strict))
            batches = text_batches(reader, suggester)
        else:
            batches = matrix_batches(_load_features(data, loaded))
        file, progress = _destination(out, stack)
        write_lines(file, suggester, batches, query, progress)
    if reader is not None and reader.report.problems:
        report(reader)


def _load_features(path: str, model: LabelEstimator) -> Any:
    with _console.waiting(f"reading {path}"):
        rows = load_data(path)
    check_features_match(rows, model)
    return rows.X


def _destination(out: str, stack: ExitStack) -> tuple[IO[bytes], Callable[[float], None] | None]:
    """Return the stream to write to, and a progress bar unless that is the terminal itself."""
    if out == STANDARD_OUTPUT:
        stack.enter_context(naming_what_is_full("Standard output"))
        return sys.stdout.buffer, None
    file = stack.enter_context(open_replacing(out))
    return file, stack.enter_context(_console.progress_bar("predicting"))
