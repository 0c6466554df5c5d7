"""The methods of the study: how each is trained, how it is asked, and which rows of the tables it fills."""

from dataclasses import dataclass
from typing import Any

from benchmarks.paper.sets import StudySet
from benchmarks.settings import BEAM, Entry, Search
from longleaf.presets import preset

MODULE = "benchmarks.systems.longleaf"
SYSTEM = f"{MODULE}:Longleaf"
TAIL = {"tail": 1.0}
EXACT = Search("exact")
GAINS = Search("exact, gains", TAIL, gains=True)
BEAM_10 = Search("beam 10", BEAM)
BEAM_GAINS = Search("beam 10, gains", BEAM | TAIL, gains=True)
UNION = Search("exact, union", {"ensemble": "union"})
UNION_GAINS = Search("exact, gains, union", {"ensemble": "union"} | TAIL, gains=True)
FLAT_SEARCHES = (EXACT, GAINS)
TREE_SEARCHES = (EXACT, GAINS, BEAM_10, BEAM_GAINS, UNION, UNION_GAINS)

HINGE = {"loss": "squared-hinge", "C": 1.0, "hinge_power": 2}
PAPER = {name: value for name, value in preset("paper").items() if name != "C"}


@dataclass(frozen=True)
class Method:
    """One way to train; ``params`` may leave out C, which then is the data set's."""

    setting: str
    params: dict[str, Any]
    searches: tuple[Search, ...]
    system: str = SYSTEM


METHODS = {
    "br-log": Method("BR, log, C=32", {"estimator": "BR", "loss": "log", "C": 32.0}, FLAT_SEARCHES),
    "br-hinge": Method("BR, squared hinge, C=1", {"estimator": "BR", **HINGE}, FLAT_SEARCHES),
    "plt-log": Method("3 binary trees, log", {"estimator": "PLT", **PAPER}, TREE_SEARCHES),
    "plt-hinge": Method(
        "3 binary trees, squared hinge, C=1", {"estimator": "PLT", **preset("parabel")}, TREE_SEARCHES
    ),
    "bonsai": Method("Bonsai", {"estimator": "PLT", **preset("bonsai")}, (BEAM_10, BEAM_GAINS)),
    "dismec": Method("DiSMEC", {"estimator": "BR.dismec"}, (EXACT,)),
    "pw-dismec": Method("PW-DiSMEC", {"estimator": "BR.pw_dismec"}, (EXACT,)),
    "pw-dismec-cb": Method(
        "PW-DiSMEC, class-balanced", {"estimator": "BR.pw_dismec", "class_balanced": True}, (EXACT,)
    ),
    "proxml": Method("ProXML", {"estimator": "ProXML"}, (EXACT,)),
    "pfastrexml": Method("PfastreXML", {"estimator": "PfastreXML"}, (EXACT,), f"{MODULE}:Pickled"),
}

# Name in the tables, method, search.
Row = tuple[str, str, Search]
TABLE_1: tuple[Row, ...] = (
    ("ProXML", "proxml", EXACT),
    ("PW-DiSMEC", "pw-dismec-cb", EXACT),  # the paper's row is the class-balanced variant
    ("PW-DiSMEC, not balanced", "pw-dismec", EXACT),
    ("DiSMEC", "dismec", EXACT),
    ("BR", "br-log", EXACT),
    ("PS-BR", "br-log", GAINS),
    ("PfastreXML", "pfastrexml", EXACT),
    ("Parabel", "plt-hinge", BEAM_10),
    ("Bonsai", "bonsai", BEAM_10),
    ("PLT", "plt-log", EXACT),
    ("PS-PLT", "plt-log", GAINS),
)
SUB_LINEAR = ("PfastreXML", "Parabel", "Bonsai", "PLT", "PS-PLT")
TABLE_2 = ("ProXML", "PW-DiSMEC", "PfastreXML", "PLT", "PS-PLT")
TABLE_4: tuple[Row, ...] = (
    ("PLT, log", "plt-log", EXACT),
    ("PLT, log, beam", "plt-log", BEAM_10),
    ("PLT, log, union", "plt-log", UNION),
    ("PS-PLT, log, A*", "plt-log", GAINS),
    ("PS-PLT, log, beam", "plt-log", BEAM_GAINS),
    ("PS-PLT, log, A*, union", "plt-log", UNION_GAINS),
    ("PLT, h2", "plt-hinge", EXACT),
    ("PLT, h2, beam", "plt-hinge", BEAM_10),
    ("PLT, h2, union", "plt-hinge", UNION),
    ("PS-PLT, h2, A*", "plt-hinge", GAINS),
    ("PS-PLT, h2, beam", "plt-hinge", BEAM_GAINS),
    ("PS-PLT, h2, A*, union", "plt-hinge", UNION_GAINS),
    ("BR, log", "br-log", EXACT),
    ("PS-BR, log", "br-log", GAINS),
    ("BR, h2", "br-hinge", EXACT),
    ("PS-BR, h2", "br-hinge", GAINS),
)


def entry(name: str, study: StudySet, seed: int) -> Entry:
    """Return what the runner measures for one cell."""
    method = METHODS[name]
    params = method.params | {"random_state": seed, "propensity": list(study.constants)}
    if params["estimator"] == "PLT":
        params = {"C": study.tree_cost} | params
    return Entry(name, method.system, method.setting, params, method.searches)
