"""Addresses that answers may be sent to: none of a machine's own services, such as a cloud's metadata."""

import ipaddress
import socket
import unicodedata
from urllib.parse import urlsplit

LINK_LOCAL = (
    "this is the address of a machine's own services, such as a cloud's metadata (169.254.0.0/16, fe80::/10)"
)
# Link-local by use, though not by number: of AWS (IPv6), Alibaba, Oracle and Azure.
_SERVICES = frozenset(
    map(ipaddress.ip_address, ("fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16"))
)
_NAMES = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)
_NAMES_BELOW = (".metadata.google.internal", ".metadata.goog")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def why_no_address(url: str) -> str | None:
    r"""Why nothing can be sent to a URL, without quoting it; None if something can.

    >>> why_no_address("https://example.org/hook"), why_no_address("https://example.org/\r\nHost: other")
    (None, 'it has a line break, a space or another control character')
    """
    # urlsplit would leave line breaks out, and the request would not.
    if not url.isprintable() or " " in url:
        return "it has a line break, a space or another control character"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "this is no address"
    if parts.scheme not in ("https", "http") or not host:
        return "this is no address"
    return LINK_LOCAL if is_link_local(host) else None


def is_link_local(host: str) -> bool:
    """Whether a host, by name or number, is one of a machine's own services; no name is looked up.

    >>> [is_link_local(host) for host in ("169.254.169.254", "2852039166", "0xa9.0xfe.43518")]
    [True, True, True]
    >>> [is_link_local(host) for host in ("example.org", "127.0.0.1", "::1", "10.0.0.1")]
    [False, False, False, False]
    """
    # As names are made ready for the resolver: wide digits and stops become plain ones.
    name = unicodedata.normalize("NFKC", host).replace("\u3002", ".").rstrip(".").lower()
    if name in _NAMES or name.endswith(_NAMES_BELOW):
        return True
    address = _address(name.strip("[]"))
    return address is not None and _is_of_the_machine(address)


def _address(host: str) -> Address | None:
    """The number behind a host, in all the forms that the system's own resolver takes; None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def _is_of_the_machine(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64 or int(address) < 2**32:
            inner = ipaddress.IPv4Address(int(address) % 2**32)
        if inner is not None and _is_of_the_machine(inner):
            return True
    return address.is_link_local or address in _SERVICES
