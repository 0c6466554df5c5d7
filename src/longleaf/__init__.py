"""longleaf: the few right labels among millions, the rare ones included."""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from longleaf.client import AsyncClient as AsyncClient
    from longleaf.client import Client as Client

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


def __getattr__(name: str) -> Any:
    """Load the clients, which need the extra ``serve``, when somebody asks for one."""
    if name in ("AsyncClient", "Client"):
        from longleaf import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
