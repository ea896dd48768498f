"""Live prices of GCP: the public price list of Compute Engine (Cloud Billing Catalog API).

Google prices parts (a core, a GiB of memory, a GPU, a GiB of disk), one SKU each. A machine costs the sum of
its parts, or has no price where one of them has none.

``client`` pulls SKUs, and ``skus`` recognises them and adds up what a machine costs.
"""

from advisor.pricing.sources.gcp.gcp_source import GcpSource, gcp_source

__all__ = ["GcpSource", "gcp_source"]
