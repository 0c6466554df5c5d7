"""longleaf: the few right labels among millions, the rare ones included."""

__version__ = "0.1.0"

from longleaf import metrics, propensity
from longleaf._suggest import Suggestion
from longleaf._validation import DataError, ModelError
from longleaf.br import BR
from longleaf.io.tables import read_table
from longleaf.io.xmlc import load_xmlc, save_xmlc
from longleaf.models import load
from longleaf.plt import PLT
from longleaf.propensity import inverse_propensity
from longleaf.search import TopK
from longleaf.sensitivity import Sensitivity, psp_sensitivity
from longleaf.split import split_rows
from longleaf.tagger import Tagger
from longleaf.text import TextVectorizer
from longleaf.tree import LabelTree
from longleaf.tune import Tuning, tune
from longleaf.words import Explanation

__all__ = [
    "BR",
    "PLT",
    "DataError",
    "Explanation",
    "LabelTree",
    "ModelError",
    "Sensitivity",
    "Suggestion",
    "Tagger",
    "TextVectorizer",
    "TopK",
    "Tuning",
    "inverse_propensity",
    "load",
    "load_xmlc",
    "metrics",
    "propensity",
    "psp_sensitivity",
    "read_table",
    "save_xmlc",
    "split_rows",
    "tune",
]
