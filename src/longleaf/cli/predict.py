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
from longleaf.cli._groups import takes
from longleaf.cli._lines import Written, matrix_batches, most_rows, text_batches, write_batches
from longleaf.cli._names import NameFile, name_file
from longleaf.cli._output import STANDARD_OUTPUT, OutputFormat, OutputShape, RowKind
from longleaf.cli._search import search_settings
from longleaf.cli._suggestion_table import SuggestionTable
from longleaf.cli._tables import (
    check_form_matches,
    given,
    given_fields,
    label_model,
    open_table,
    report,
)
from longleaf.cli._worth import Worth, worth_settings
from longleaf.estimator import LabelEstimator
from longleaf.io.streams import naming_what_is_full, open_replacing
from longleaf.io.tables import TableReader
from longleaf.models import load
from longleaf.search.auto_k import DEFAULT_MOST
from longleaf.suggest import AUTO
from longleaf.tagger import Tagger, suggester_of
from longleaf.training.params import MOST_K

RANKING = {
    "k": "-k",
    "max_k": "--max-k",
    "tail": "--tail",
    "gain": "--gain",
    "utility": "--utility",
    "min_utility": "--min-utility",
    "min_probability": "--min-probability",
    "propensity": "--propensity",
    "search": "--search",
    "epsilon": "--epsilon",
    "max_nodes": "--max-nodes",
    "deadline_ms": "--deadline-ms",
    "only": "--only",
    "never": "--never",
    "groups": "--groups",
}
"""What decides which labels are written, by its option: with a coverage, the probabilities alone do."""


@takes(worth=worth_settings, search=search_settings, names=name_file)
def predict(
    context: typer.Context,
    model: _options.ModelPath,
    data: _options.DataPath,
    k: Annotated[
        str,
        typer.Option(
            "-k",
            metavar="K",
            help="Labels per row; auto: as many as are likely, for each row.",
            callback=_options.parse_k,
        ),
    ] = "5",
    max_k: Annotated[
        int | None,
        typer.Option(
            "--max-k",
            min=1,
            max=MOST_K,
            metavar="N",
            help=f"Maximum labels per row with -k auto; default: {DEFAULT_MOST}.",
        ),
    ] = None,
    *,
    worth: Worth,
    min_probability: _options.MinProbability = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            "--coverage",
            metavar="C",
            help="Sets of labels that hold this share of the true labels on average, above 0 and below 1; "
            "needs `longleaf fit-sets`.",
            callback=_options.check_coverage,
        ),
    ] = None,
    propensity: _options.Propensity = None,
    search: dict[str, Any],
    threads: _options.Threads = None,
    text: _options.TextFields = None,
    id: _options.IdField = None,
    names: NameFile | None,
    only: _options.Only = None,
    never: _options.Never = None,
    groups: _options.Groups = None,
    show_words: Annotated[
        bool, typer.Option("--show-words", help="Also list the words that support each tag.")
    ] = False,
    strict: _options.Strict = False,
    out: Annotated[
        str,
        typer.Option(
            "-o",
            "--out",
            metavar="OUT",
            help="File to write: .jsonl, .csv or .tsv, and .gz, .xz or .bz2; default: standard output.",
            callback=_options.not_empty,
        ),
    ] = STANDARD_OUTPUT,
    format: Annotated[
        OutputFormat | None,
        typer.Option("--format", help="Format of the output; default: by the suffix of OUT, or jsonl."),
    ] = None,
    rows: Annotated[
        RowKind | None,
        typer.Option(
            "--rows",
            help="What a row of a table is: a record with all its columns (the default), or a suggestion.",
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter",
            metavar="D",
            help="Delimiter of CSV: ',' or ';' (with decimal commas); default: that of DATA, or ','.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Suggest labels for each row of DATA, as lines of JSON or as a table."""
    if max_k is not None and k != AUTO:
        raise typer.BadParameter("--max-k needs -k auto.")
    if coverage is not None:
        _options.check_alone(context, "--coverage", RANKING)
    shape = OutputShape.parse(out, format, rows, delimiter)
    inputs = [data, *worth.files, only, never, groups]
    if inputs.count("-") > 1:
        raise typer.BadParameter(
            "Only one of DATA, --gain, --utility, --only, --never and --groups can be -."
        )
    if out != STANDARD_OUTPUT:
        check_not_read(out, *inputs, None if names is None else names.path)
        check_new_file(out, force)
    elif sys.stdout is None:
        raise DataError("Standard output is closed; name a file with -o.")
    if propensity is not None and not worth.tail:
        _console.note("--propensity has no effect here: it only applies to --tail.")
    loaded = load(model)
    trained = label_model(loaded)
    fields = given_fields(text=text, id=id)
    about_texts = given(names=names, strict=strict) | ({"show-words": True} if show_words else {})
    check_form_matches(data, loaded, fields | about_texts)
    if names is not None and isinstance(loaded, Tagger):
        loaded.names = known = names.read()
        names.note_unused(known, loaded.classes_)
    suggester = suggester_of(loaded)
    filters = Filters.read(suggester.tags, only=only, never=never, groups=groups, strict=strict)
    if coverage is not None:
        if trained.risk_control_ is None:
            raise DataError(f"{model} has no sets for --coverage: fit them with longleaf fit-sets.")
        query = suggester.set_query(coverage, explain=show_words, n_jobs=threads)
    else:
        query = suggester.query(
            k,
            max_k=max_k,
            **worth.arguments(suggester),
            min_probability=min_probability,
            propensity=_options.parse_propensity(propensity, trained),
            **vars(filters),
            explain=show_words,
            **search,
            n_jobs=threads,
        )
    most = most_rows(suggester, query)
    with ExitStack() as stack:
        reader: TableReader | None = None
        if isinstance(loaded, Tagger):
            fields = loaded.fields_ | fields | {"tags": None}
            options = {"strict": strict, "keep_textless": shape.is_table}
            reader = stack.enter_context(open_table(data, fields, **options))
            batches = text_batches(reader, suggester, most)
        else:
            batches = matrix_batches(_load_features(data, loaded), most)
        form = shape.form(reader, suggester, query, scores=not worth.is_probability)
        file, progress = _destination(out, stack)
        written = write_batches(file, form, suggester, batches, query, progress)
    if reader is not None and reader.report.problems:
        report(reader)
    _console.note(_written_sentence("Standard output" if out == STANDARD_OUTPUT else out, written, reader))
    if query.may_end_early:
        records = "1 record is" if written.records == 1 else f"{written.records} records are"
        _console.note(f"The labels of {written.exact} of {records} provably the best.")
    if isinstance(form, SuggestionTable) and form.unwritten:
        _console.note(_unwritten_sentence(form))


def _load_features(path: str, model: LabelEstimator) -> Any:
    with _console.waiting(f"reading {path}"):
        rows = load_data(path)
    check_features_match(rows, model)
    return rows.X


def _written_sentence(out: str, written: Written, reader: TableReader | None) -> str:
    """Say how many rows were written, and how many records have no suggestion or no row."""
    sentence = f"{out}: {written.rows} {'row' if written.rows == 1 else 'rows'} written"
    if written.rows != written.records:
        sentence += f" for {written.records} records"
    if written.empty:
        sentence += f", {written.empty} of them without suggestions"
    skipped = 0 if reader is None else reader.report.rows - written.records
    return sentence + (f"; {skipped} of {reader.report.rows} rows skipped" if reader and skipped else "")


def _unwritten_sentence(table: SuggestionTable) -> str:
    """Name the fields that later rows have and the table has no columns for."""
    fields = ", ".join(f"{name} ({rows})" for name, rows in table.unwritten.most_common())
    return f"Not written, as none of the first rows has these fields (and how many later ones do): {fields}."


def _destination(out: str, stack: ExitStack) -> tuple[IO[bytes], Callable[[float], None] | None]:
    """Return the stream to write to, and a progress bar unless that is the terminal itself."""
    if out == STANDARD_OUTPUT:
        stack.enter_context(naming_what_is_full("Standard output"))
        return sys.stdout.buffer, None
    file = stack.enter_context(open_replacing(out))
    return file, stack.enter_context(_console.progress_bar("predicting"))
