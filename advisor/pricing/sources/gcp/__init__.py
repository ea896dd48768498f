"""Live prices of GCP: the public price list of Compute Engine (Cloud Billing Catalog API).

Google prices parts (a core, a GiB of memory, a GPU, a GiB of disk), one SKU each. A machine costs the sum of
its parts, or has no price where one of them has none.

Modules, in the order of the data: ``client`` pulls SKUs, ``skus`` recognises them, ``rates`` has one price a
part, ``machines`` says which parts a machine has, ``quotes`` adds them up, ``source`` is the plug-in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from advisor.pricing.sources.protocol import check_options

if TYPE_CHECKING:
    from advisor.pricing.sources.gcp.source import GcpSource


def gcp_source(options: Mapping[str, Any]) -> GcpSource:
    """The entry point; it has no options: credentials are Google's application-default ones.

    Raises:
        ConfigError: an option is given.
    """
    from advisor.pricing.sources.gcp.source import GcpSource

    check_options("gcp", options, ())
    return GcpSource()
