"""Model folders with one thing wrong, and what becomes of them: each is tried in a process of its own.

A mutant is a whole folder, its checksums included, so that nothing but the checks of what fields and arrays
say stands between it and the code. `python -m tests.helpers.mutants FOLDER COUNT SEED` counts what happens
to many.
"""

import copy
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

if os.environ.get("LONGLEAF_SOURCE"):  # another version than the one that is installed
    sys.meta_path = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
    sys.path.insert(0, os.environ["LONGLEAF_SOURCE"])

import longleaf as ll
from longleaf import explain
from longleaf.baselines.proxml import ProXML
from longleaf.io import _arrays, _manifest
from longleaf.io.storage import load_folder
from tests.helpers.limits import limit_memory

SECONDS = 20
"""More than any mutant takes to be refused or to answer; fewer than a hang."""
SPARE_BYTES = 400 << 20
"""What a mutant may take beside what the process has: it holds a few kilobytes."""
OUR_WORDS = re.compile(r"\b(must|damaged|altered|newer longleaf|not a longleaf model|known are)\b")

DEEP: list[Any] = [0]
for _ in range(200):
    DEEP = [DEEP]
NUMBERS_OF_JSON = (0, 1, -1, 2, 3, 7, 2**31 - 1, 2**31, 2**63, -(2**63), 10**12, 10**400)
FRACTIONS = (0.0, -0.5, 1.5, 1e-300, 1e15, 1e30, 1e308, -1e308)
STRINGS = ("", "NaN", "nan", "1", "log", "squared-hinge", "x" * 100_000, "\ud800", "../..")
LISTS = (
    [],
    [[]],
    [1],
    [1, 2],
    [None, None],
    [1e308, 1e308],
    ["a"],
    ["a", "a"],
    {},
    {"a": 1},
    {"": None},
    DEEP,
)
VALUES = (None, True, False, *NUMBERS_OF_JSON, *FRACTIONS, *STRINGS, *LISTS)
NUMBERS = {
    "f": (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e30, -1e16, 1e-45, -0.0, 0.0, 1.0, -1.0),
    "i": (-1, 0, 1, 2, 3, 63, 64, 127, 1 << 31, 1 << 62),
    "u": (0, 1, 2, 3, 127, 128, 255, 1 << 31, 1 << 62),
    "b": (False, True),
}

ROWS = [[0], [1, 2], [0, 3], [4], [5]]
TEXTS = ["olive oil from Crete", "red wine and bread", "wheat, fish and a licence for the import", "?"]

WORDS_OF_TAGS = {"tag0": "olive oil", "tag1": "wine", "tag2": "wheat", "tag9": "licence"}


def corpus(n_rows=60):
    """Make texts and tags, enough for trees of two levels."""
    random, things = np.random.default_rng(0), [text.split() for text in TEXTS[:3]]
    texts, tags = [], []
    for row in range(n_rows):
        chosen = sorted({int(thing) for thing in random.integers(0, 3, 2)} | {row % 3})
        texts.append(" ".join(random.choice([word for thing in chosen for word in things[thing]], 6)))
        tags.append([f"tag{thing}" for thing in chosen] + [f"tag{3 + row % 5}"])
    return texts, tags


def with_fields(n_rows):
    """Make records with titles, and their tags."""
    texts, tags = corpus(n_rows)
    return [{"title": text.split()[0], "text": text} for text in texts], tags


def save_models(folder):
    """Save a small model of each kind, and give their names."""
    texts, tags = corpus()
    settings = {"random_state": 1, "n_jobs": 1}
    vectorizer = ll.TextVectorizer().fit(texts)
    X, numbers = vectorizer.transform(texts), [[int(tag[3:]) for tag in row] for row in tags]
    trees = {"n_trees": 2, "max_leaf": 2, "arity": 2} | settings
    models = {
        "plt": ll.PLT(**trees).fit(X, numbers),
        "plt32": ll.PLT(weight_bits=32, loss="log", **trees).fit(X.toarray(), numbers),
        "br": ll.BR(**settings).fit(X, numbers),
        "proxml": ProXML(positive_weight=1.0, **settings).fit(X, numbers),
        "tagger": ll.Tagger(ll.PLT(**trees)).fit(texts, tags),
        "named": ll.Tagger(ll.PLT(**trees), names={"tag0": "Oil", "tag1": "Wine"}).fit(texts, tags),
        "fused": ll.Tagger(ll.PLT(**trees), names=WORDS_OF_TAGS).fit(*with_fields(600)),
        "recorded": ll.Tagger(ll.PLT(**trees), keep_records=True).fit(texts, tags),
        "hashed": ll.Tagger(ll.BR(**settings), ll.TextVectorizer(hashing=64, n_jobs=1)).fit(texts, tags),
    }
    columns = [f"c{column}" for column in range(X.shape[1])]
    models["plt"].feature_names_in_ = np.array(columns, dtype=object)
    models["tagger"].fields_ = {"text": ["title", "text"], "tags": "tags", "id": None, "separator": ";"}
    models["br"].origin_ |= {"tuning": {"trials": [1]}, "updates": [{"rows": 3}]}
    models["br"].fit_sets(X, numbers, max_size=3)
    models["tagger"].fit_sets(texts, tags)
    for name, model in models.items():
        model.save(folder / name)
    return list(models)


def mutate(source, target, random):
    """Write a copy of a model with one thing wrong; say what."""
    shutil.copytree(source, target)
    if random.random() < 0.5:
        return mutate_json(target, random)
    return mutate_array(target, random)


def mutate_json(model, random):
    body = json.loads((model / "model.json").read_text())
    del body["crc32"]
    places = list(_places(body["meta"], ("meta",)))
    shown = [place for place in places if "settings" in place]  # a copy of the parameters, to be looked at
    asked = [place for place in places if "settings" not in place]
    places = asked * 4 + shown + list(_places(body["arrays"], ("arrays",)))
    path = places[random.integers(len(places))]
    if random.random() < 0.1:
        path = (list(body)[random.integers(len(body))],)
    holder = body
    for step in path[:-1]:
        holder = holder[step]
    kind = random.random()
    if kind < 0.12 and isinstance(holder, dict):
        del holder[path[-1]]
        what = "missing"
    elif kind < 0.2 and isinstance(holder, dict):
        holder["bark"] = what = copy.deepcopy(VALUES[random.integers(len(VALUES))])
    else:
        holder[path[-1]] = what = copy.deepcopy(VALUES[random.integers(len(VALUES))])
    (model / "model.json").write_bytes(_manifest._seal(body))
    return f"{'.'.join(map(str, path))} = {what!r:.60}"


def _places(value, path):
    """List the paths of everything below a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield (*path, key)
        yield from _places(below, (*path, key))


def mutate_array(model, random):
    folder = load_folder(model)
    name = sorted(folder.arrays)[random.integers(len(folder.arrays))]
    array = np.array(folder.arrays[name])
    numbers = NUMBERS[array.dtype.kind]
    value = np.array(numbers[random.integers(len(numbers))])
    with np.errstate(all="ignore"):
        value = value.astype(array.dtype)
    kind = random.random()
    if kind < 0.6 and array.size:
        at = random.integers(0, array.size, random.integers(1, 4))
        array[at] = value
        what = f"[{at.tolist()}] = {value}"
    elif kind < 0.75:
        array[:] = value
        what = f"[:] = {value}"
    elif kind < 0.9:
        length = int(random.integers(0, 2 * array.size + 2))
        array = np.resize(array, length) if array.size else np.full(length, value)
        what = f"has {length} elements"
    else:
        array = [array.astype("f8"), array.astype("u1"), array.astype("?"), array[None]][random.integers(4)]
        what = f"is {array.dtype} {array.shape}"
    (model / f"{name}.npy").unlink()
    entry = _arrays.write_array(model, name, array)
    body = json.loads((model / "model.json").read_text())
    del body["crc32"]
    body["arrays"][name] = {"dtype": entry.dtype, "shape": list(entry.shape)}
    body["arrays"][name] |= {"bytes": entry.file_bytes, "crc32": entry.crc32}
    (model / "model.json").write_bytes(_manifest._seal(body))
    return f"{name} {what}"


def try_model(path):
    """Load a model and ask it for all that it can do; give what happened, a word at a time."""
    outcome, model, whole = [], None, False
    for verify in (False, True):
        try:
            model = ll.load(path, verify=verify)
            whole = verify
        except ll.ModelError as error:
            outcome.append(_judged("verify" if verify else "load", error))
            if not verify:
                return outcome
    for use in (_predict, _dial, _sets, _explain, _save, _learn, _save):
        try:
            use(model, path, whole)
        except ValueError as error:
            if whole and use in (_predict, _save):
                raise AssertionError(f"verified, but {use.__name__}: {str(error)[:200]}") from error
            outcome.append(_judged(use.__name__, error))
    return outcome or ["answers"]


def _judged(place, error):
    if isinstance(error, UnicodeError) or not OUR_WORDS.search(str(error)) or len(str(error)) > 2000:
        raise error
    return f"{place} refused"


def _predict(model, path, whole):
    if isinstance(model, ll.Tagger):
        for options in ({}, {"search": "beam", "beam": 2}, {"only": [str(model.classes_[0])]}):
            for row in model.suggest(TEXTS, k=3, **options):
                assert not any(np.isnan(one.score) for one in row), "a score is not a number"
        return
    X = rows_of(model)
    model.predict(X)
    for options in ({}, {"search": "beam", "beam": 2}, {"ensemble": "union"}):
        top = model.top_k(X, 3, **options)
        assert top.labels.max(initial=-1) < model.n_labels_, "a label that is none"
        assert top.labels.min(initial=-1) >= -1, "a label that is none"
        assert not np.isnan(top.scores).any(), "a score is not a number"


def _dial(model, path, whole):
    if isinstance(model, ll.Tagger):
        model.suggest(TEXTS, k=3, tail=1.0)
    else:
        assert not np.isnan(model.top_k(rows_of(model), 3, tail=1.0).scores).any(), "a score is not a number"


def _sets(model, path, whole):
    if isinstance(model, ll.Tagger):
        if model.estimator_.risk_control_ is not None:
            model.suggest_set(TEXTS, coverage=0.6)
    elif model.risk_control_ is not None:
        top = model.predict_set(rows_of(model), 0.6)
        assert (top.labels >= 0).sum(axis=1).max() <= model.risk_control_.max_size


def _explain(model, path, whole):
    if isinstance(model, ll.Tagger):
        found = model.explain(TEXTS[0], tag=str(model.classes_[-1]))
        found.to_text()
        found = [value for _, value in found.contributions]
    else:
        found = explain.explain_row(model, rows_of(model)[:1], model.n_labels_ - 1).contributions
    assert not whole or np.isfinite(found).all(), "an explanation is not finite"


def _learn(model, path, whole):
    if isinstance(model, ll.Tagger):
        if isinstance(model.estimator_, ll.PLT):
            model.partial_fit(TEXTS, [["tag1"], ["tag2"], ["new", "tag1"], []])
            model.suggest(TEXTS, k=3, tail=1.0)
    elif isinstance(model, ll.PLT):
        X = rows_of(model)
        model.partial_fit(X, [*ROWS, [model.n_labels_]][: len(X)])
        assert not np.isnan(model.top_k(X, 3).scores).any(), "a score is not a number"


def _save(model, path, whole):
    before = sorted(load_folder(path).arrays)
    model.save(path.with_name("again"), force=True)
    again = ll.load(path.with_name("again"), verify=whole)
    if whole:
        _predict(again, path, whole)
    assert before


def rows_of(model):
    assert model.n_features_in_ < 1000, "so many features are not to be had"
    return np.random.default_rng(0).random((6, model.n_features_in_)) * (np.arange(6) > 0)[:, None]


def trial(path):
    """Try a model in a process of its own, with bounded time and memory; give what happened."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        try:
            limit_memory(SPARE_BYTES)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.alarm(SECONDS)
            np.seterr(all="ignore")
            try:
                said = "\n".join(try_model(path))
            except BaseException as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{Path(last.filename).name}:{last.lineno}"
                said = f"BAD {type(error).__name__}: {str(error)[:150]} ({place})"
            os.write(write, said.encode("utf-8", "replace"))
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return ["BAD hang" if number == signal.SIGALRM else f"BAD crash: {signal.Signals(number).name}"]
    if status:  # how a sanitizer ends a process
        return [f"BAD exit: {os.waitstatus_to_exitcode(status)}"]
    return said.split("\n")


def try_mutants(models, count, seed, show=lambda line: None):
    """Try so many mutants of saved models; give what happened to how many, and the bad ones."""
    found, bad = Counter(), []
    sources = sorted(path for path in models.iterdir())
    os.fsync = lambda handle: None  # nothing here must outlive a power cut
    for number in range(count):
        random = np.random.default_rng([seed, number])
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder, "mutant")
            source = sources[number % len(sources)]
            what = f"{number} {source.name}: {mutate(source, target, random)}"
            outcome = trial(target)
        found.update(said.split(":")[0] for said in outcome)
        if outcome[0].startswith("BAD"):
            bad.append(f"{what} -> {outcome[0]}")
            show(bad[-1])
    return found, bad


if __name__ == "__main__":
    home = Path(sys.argv[1])
    if not home.exists():
        home.mkdir()
        save_models(home)
    number, first = map(int, sys.argv[2:])
    counts, failures = try_mutants(home, number, first, lambda line: print(line, flush=True))
    print(len(failures), dict(counts))
