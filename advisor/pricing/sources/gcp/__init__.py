"""Live prices of GCP: the public price list of Compute Engine (Cloud Billing Catalog API).

Google prices parts (a core, a GiB of memory, a GPU, a GiB of disk), one SKU each. A machine costs the sum of
its parts, or has no price where one of them has none.

Modules, in the order of the data: ``client`` pulls SKUs, ``skus`` recognises them, ``component_rates`` has
one price a part, ``machines`` says which parts a machine has, ``quotes`` adds them up, ``source`` is the
plug-in.
"""

from advisor.pricing.sources.gcp.gcp_source import GcpSource, gcp_source

__all__ = ["GcpSource", "gcp_source"]
