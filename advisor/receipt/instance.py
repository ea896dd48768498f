"""Which rented machine this is: what the metadata service of AWS (IMDSv2) or of GCP says.

Both answer at one address that is on the machine itself. Elsewhere there is no answer, so little time is
given.
"""

import http.client
import json
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from urllib.parse import SplitResult, urlsplit

from advisor.core.values import Market

MOST_S = 0.3
_MOST_BYTES = 65_536
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_AWS_MARKETS = {"on-demand": Market.ON_DEMAND, "spot": Market.SPOT, "capacity-block": Market.CAPACITY_BLOCK}


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A rented machine; ``zone`` as offers have it, so an ID on AWS. None is not known."""

    provider: str
    instance_type: str
    region: str
    zone: str | None
    market: Market | None


def this_instance(url: str, *, most_s: float = MOST_S) -> Instance | None:
    """The machine that we are on; None if no cloud that we know says so in time."""
    answers: list[Instance | None] = []
    # A thread, since a service that answers letter by letter would outlast the time-out of its socket.
    thread = threading.Thread(target=lambda: answers.append(_asked(url, most_s)), daemon=True)
    thread.start()
    thread.join(most_s)
    return next(iter(answers), None)


def _asked(url: str, most_s: float) -> Instance | None:
    try:
        ask = partial(_ask, urlsplit(url), most_s)
        return _aws(ask) or _gcp(ask)
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError, AttributeError):
        # What answers there is none of these services.
        return None


def _ask(
    place: SplitResult, most_s: float, path: str, headers: Mapping[str, str], *, method: str = "GET"
) -> str | None:
    """The answer's text; None where there is no such thing.

    Raises:
        OSError: there is no answer, or the time is over.
        ValueError: the answer is no text.
    """
    connection = http.client.HTTPConnection(place.hostname or "", place.port or 80, timeout=most_s)
    with closing(connection):
        connection.request(method, path, headers=dict(headers))
        reply = connection.getresponse()
        text = reply.read(_MOST_BYTES).decode()
        return text if reply.status == http.HTTPStatus.OK else None


def _aws(ask: Callable[..., str | None]) -> Instance | None:
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = ask("/latest/api/token", lifetime, method="PUT")
    headers = {"X-aws-ec2-metadata-token": (token or "").strip()}
    identity = ask("/latest/dynamic/instance-identity/document", headers) if token else None
    if identity is None:
        return None
    known = json.loads(identity)
    zone = ask("/latest/meta-data/placement/availability-zone-id", headers)
    life_cycle = ask("/latest/meta-data/instance-life-cycle", headers)
    return Instance(
        provider="aws",
        instance_type=_name(known["instanceType"]),
        region=_name(known["region"]),
        zone=None if zone is None else _name(zone),
        market=_AWS_MARKETS.get((life_cycle or "").strip()),
    )


def _gcp(ask: Callable[..., str | None]) -> Instance | None:
    text = ask("/computeMetadata/v1/instance/?recursive=true", {"Metadata-Flavor": "Google"})
    if text is None:
        return None
    known = json.loads(text)
    zone = _name(known["zone"].rpartition("/")[2])
    is_spot = {"TRUE": True, "FALSE": False}.get(known["scheduling"]["preemptible"])
    return Instance(
        provider="gcp",
        instance_type=_name(known["machineType"].rpartition("/")[2]),
        region=zone.rpartition("-")[0],
        zone=zone,
        market=None if is_spot is None else Market.SPOT if is_spot else Market.ON_DEMAND,
    )


def _name(text: str) -> str:
    """A name as clouds give them. Raises ValueError: it is none."""
    if not _NAME.fullmatch(text.strip()):
        raise ValueError("no name")
    return text.strip()
