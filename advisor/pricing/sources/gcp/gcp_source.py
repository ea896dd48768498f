"""The plug-in: one pull of Google's price list -> a part for each region and market.

What a project may start in each region is read here, too, by the REST API of Compute Engine.

What pulls is imported when someone pulls: most commands only ask which sources there are.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from advisor.core.deadlines import LateError, within
from advisor.core.errors import CloudError
from advisor.core.values import Market
from advisor.pricing.sources import protocol
from advisor.pricing.sources.http_downloads import Allowance, LongReplyError

if TYPE_CHECKING:
    import requests

    from advisor.pricing.sources.gcp.client import ApiPatience


MARKETS = tuple(market for market in Market if market is not Market.CAPACITY_BLOCK)
SCOPE_OF_FAILURE = "compute engine"


class GcpSource:
    """Prices of GCP machines with GPUs, from the Cloud Billing Catalog."""

    name = "gcp"
    capabilities = protocol.Capabilities(providers=("gcp",), markets=MARKETS, is_live=True)

    def __init__(
        self, patience: ApiPatience | None = None, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._patience = patience
        self._clock = clock

    def offers(self, query: protocol.OfferQuery) -> Iterator[protocol.Part]:
        """Offers that match, a part for each region and market, also where there are none.

        If the list cannot be had as a whole, there is one part with the reason: a SKU that is missing from
        half a list would look like a machine that cannot be priced.

        Raises CatalogError: a shipped table of machine types is missing or broken.
        """
        from advisor.pricing.sources.gcp.client import ApiPatience, PullError, pull_skus
        from advisor.pricing.sources.gcp.skus import PROVIDER, load_machines, part_of, rates_of

        machines = tuple(machine for machine in load_machines() if query.wants(machine.instance))
        regions = sorted({region for machine in machines for region in machine.regions})
        markets = [market for market in MARKETS if not query.markets or market in query.markets]
        places = [(region, market) for region in regions if query.covers(region) for market in markets]
        if not places or (query.providers and PROVIDER not in query.providers):
            return
        now = self._clock()
        try:
            rates = rates_of(pull_skus(self._patience or ApiPatience()), now)
        except PullError as error:
            yield protocol.Part(scope=SCOPE_OF_FAILURE, failure=str(error))
            return
        for region, market in places:
            part = part_of(region, market, machines, rates, retrieved_at=now)
            yield dataclasses.replace(part, offers=tuple(filter(query.matches, part.offers)))

    def freshness(self) -> tuple[protocol.Freshness, ...]:
        """A live source holds nothing."""
        return ()

    def credentials(self) -> protocol.Credentials:
        """Whether application-default credentials are at hand, as far as is known without the network."""
        from advisor.pricing.sources.gcp.client import local_credentials

        return local_credentials()


def gcp_source(options: Mapping[str, object]) -> GcpSource:
    """The entry point; credentials are Google's own. Raises ConfigError: an option is given."""
    protocol.check_options("gcp", options, ())
    return GcpSource()


API = "https://compute.googleapis.com"
# gcloud's own variables: a server that stands in for Google's, asked without credentials, and the project.
ENDPOINT_VARIABLE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE"
PROJECT_VARIABLES = ("GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT")
EVERYWHERE = "global"
"""Region of quotas of the whole project."""
_CALL_S = 20.0
_ALL_S = 60.0
_MOST_PAGES = 20
_ADVICE = "give the account the role roles/compute.viewer, or leave it: quotas are then named, not checked."


def endpoint() -> str | None:
    """The server that stands in for Google's, if one is set."""
    return os.environ.get(ENDPOINT_VARIABLE, "").rstrip("/") or None


def project_quotas() -> dict[tuple[str, str], int]:
    """Limits by region and metric, such as ``("us-central1", "NVIDIA_L4_GPUS")``, and of the project.

    Raises CloudError: they cannot be read; the text repeats nothing that the server said.
    """
    try:
        return within(_ALL_S, lambda: dict(_limits()))
    except CloudError:
        raise
    except (LateError, LongReplyError) as error:
        raise CloudError(f"quotas of gcp were not read: {error}. Try again later.") from None
    except Exception as error:  # noqa: BLE001 - Google's libraries and a reply of another shape raise anything
        raise CloudError(f"quotas of gcp were not read ({type(error).__name__}): {_ADVICE}") from None


def _limits() -> Iterator[tuple[tuple[str, str], int]]:
    session, project = _session()
    if not project:
        raise CloudError("quotas of gcp were not read: name the project in GOOGLE_CLOUD_PROJECT.")
    base = f"{endpoint() or API}/compute/v1/projects/{project}"
    with session:
        scopes = [{**_reply(session, base, fields="quotas"), "name": EVERYWHERE}]
        token: str | None = None
        for _ in range(_MOST_PAGES):
            page = _reply(session, f"{base}/regions", pageToken=token)
            scopes += page.get("items", ())
            if not (token := page.get("nextPageToken")):
                break
        else:
            raise CloudError("quotas of gcp were not read: pages without an end. Check the proxy.")
    for scope in scopes:
        for quota in scope.get("quotas", ()):
            yield (str(scope["name"]), str(quota["metric"])), int(quota["limit"])


def _reply(session: requests.Session, url: str, **query: str | None) -> dict[str, Any]:
    reply = session.get(url, params=query, timeout=_CALL_S)  # what is None is left out
    if reply.status_code != 200:
        raise CloudError(f"quotas of gcp were not read (error {reply.status_code}): {_ADVICE}")
    document: dict[str, Any] = reply.json()
    return document


def _session() -> tuple[requests.Session, str | None]:
    """A session of application-default credentials, its replies limited, and the project."""
    import requests

    from advisor.pricing.sources.gcp.client import LimitedAdapter, limit

    named = next(filter(None, map(os.environ.get, PROJECT_VARIABLES)), None)
    if endpoint():
        session = requests.Session()
        for scheme in ("https://", "http://"):
            session.mount(scheme, LimitedAdapter(Allowance(), _CALL_S))
        return session, named
    import google.auth
    from google.auth.transport.requests import AuthorizedSession

    scopes = ["https://www.googleapis.com/auth/compute.readonly"]
    credentials, project = google.auth.default(scopes=scopes)
    authorized = AuthorizedSession(credentials)
    limit(authorized, Allowance(), _CALL_S)
    return authorized, named or project
