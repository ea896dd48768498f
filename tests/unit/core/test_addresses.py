"""Addresses of a machine's own services are told by number, in every form, and by name."""

import pytest

from advisor.core.addresses import is_link_local, why_no_address

SERVICES = (
    "169.254.169.254", "169.254.0.1", "169.254.170.2", "2852039166", "0xA9FEA9FE", "0xa9.0xfe.0xa9.0xfe",
    "0251.0376.0251.0376", "169.254.43518", "169.16689662", "[fe80::1]", "[fe80::1%25eth0]", "[FEBF::1]",
    "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::169.254.169.254]", "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::1]", "[fd00:ec2::254]", "100.100.100.200", "192.0.0.192", "168.63.129.16",
    "metadata.google.internal", "METADATA.google.internal.", "metadata", "instance-data",
    "x.metadata.goog", "\uff11\uff16\uff19.254.169.254", "169\u3002254\u3002169\u3002254",
)  # fmt: skip


@pytest.mark.parametrize("host", SERVICES)
def test_nothing_is_sent_to_a_machines_own_services(host):
    why = why_no_address(f"https://{host}/latest/meta-data")
    assert why is not None
    assert "a machine's own services" in why


@pytest.mark.parametrize(
    "host",
    ["example.org", "127.0.0.1", "localhost", "[::1]", "10.1.2.3", "169.253.1.1", "[fec0::1]", "8.8.8.8",
     "ip-10-0-0-1.ec2.internal", "metadata.example.org"],
)  # fmt: skip
def test_other_addresses_may_be_sent_to(host):
    assert why_no_address(f"https://{host}:8443/hook") is None


@pytest.mark.parametrize(
    "url",
    ["https://a.org/\r\nX: y", "https://a.org/\n", "https://a\t.org/", "https://a.org/ b", "https://a.org/\x00",
     "ftp://a.org/", "https://", "https://a.org:99999/", "https://[::1/", "a.org"],
)  # fmt: skip
def test_what_is_no_address_is_refused(url):
    assert why_no_address(url) is not None


def test_any_text_is_a_host_or_none():
    for text in ("", ".", "\0", "9" * 100_000, "\udcff", "%"):
        assert not is_link_local(text)
