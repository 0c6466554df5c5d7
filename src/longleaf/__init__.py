"""longleaf: the few right labels among millions, the rare ones included."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

from longleaf import encoders, metrics, propensity
from longleaf._validation import DataError, ModelError
from longleaf.baselines.pfastrexml import PfastreXML
from longleaf.baselines.proxml import ProXML
from longleaf.br import BR
from longleaf.explain.words import Explanation
from longleaf.importing import import_model
from longleaf.io.names import read_names
from longleaf.io.store import save_store
from longleaf.io.tables import read_table
from longleaf.io.tag_names import TagNames
from longleaf.io.xmlc import load_xmlc, save_xmlc
from longleaf.models import load
from longleaf.objectives import Mixture, Optimized, optimize
from longleaf.planning import Plan, plan
from longleaf.plt import PLT
from longleaf.propensity import inverse_propensity
from longleaf.propensity._sensitivity import Sensitivity, psp_sensitivity
from longleaf.search.top_k import TopK
from longleaf.search.utility import Utility
from longleaf.split import split_rows
from longleaf.store import Store, load_store
from longleaf.suggest import Suggestion, Suggestions
from longleaf.tagger import Tagger
from longleaf.text.utilities import read_utility
from longleaf.text.vectorizer import TextVectorizer
from longleaf.trees.label_tree import LabelTree
from longleaf.tuning.tune import Tuning, tune

if TYPE_CHECKING:
    from longleaf.client import AsyncClient as AsyncClient
    from longleaf.client import Client as Client

__all__ = [
    "BR",
    "PLT",
    "DataError",
    "Explanation",
    "LabelTree",
    "Mixture",
    "ModelError",
    "Optimized",
    "PfastreXML",
    "Plan",
    "ProXML",
    "Sensitivity",
    "Store",
    "Suggestion",
    "Suggestions",
    "TagNames",
    "Tagger",
    "TextVectorizer",
    "TopK",
    "Tuning",
    "Utility",
    "encoders",
    "import_model",
    "inverse_propensity",
    "load",
    "load_store",
    "load_xmlc",
    "metrics",
    "optimize",
    "plan",
    "propensity",
    "psp_sensitivity",
    "read_names",
    "read_table",
    "read_utility",
    "save_store",
    "save_xmlc",
    "split_rows",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Load the clients, which need the extra ``serve``, when somebody asks for one."""
    if name in ("AsyncClient", "Client"):
        from longleaf import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
