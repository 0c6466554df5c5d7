"""The methods that the paper compares with: `ProXML` and `PfastreXML`."""

from longleaf.baselines.pfastrexml import PfastreXML as PfastreXML
from longleaf.baselines.proxml import ProXML as ProXML
