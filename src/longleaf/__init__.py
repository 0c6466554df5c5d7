"""longleaf: the few right labels among millions, the rare ones included."""

__version__ = "0.1.0"

from longleaf import metrics
from longleaf._validation import DataError, ModelError
from longleaf.br import BR
from longleaf.io.xmlc import load_xmlc, save_xmlc
from longleaf.models import load
from longleaf.plt import PLT
from longleaf.propensity import inverse_propensity
from longleaf.search import TopK
from longleaf.tagger import Tagger
from longleaf.text import TextVectorizer
from longleaf.tree import LabelTree

__all__ = [
    "BR",
    "PLT",
    "DataError",
    "LabelTree",
    "ModelError",
    "Tagger",
    "TextVectorizer",
    "TopK",
    "inverse_propensity",
    "load",
    "load_xmlc",
    "metrics",
    "save_xmlc",
]
