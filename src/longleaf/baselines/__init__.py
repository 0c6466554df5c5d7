"""The baselines of the paper: `ProXML` and `PfastreXML`."""

from longleaf.baselines.pfastrexml import PfastreXML as PfastreXML
from longleaf.baselines.proxml import ProXML as ProXML
