"""Connections that end before anything is sent if a name leads to a machine's own services.

To ask the name beforehand would not do: it may lead elsewhere a moment later. So the connection itself is
looked at. Through a proxy, the proxy decides.
"""

import socket
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from advisor.core.addresses import is_link_local


class LinkLocalError(Exception):
    """A name led to an address that nothing is sent to."""


def guarded_session() -> requests.Session:
    """A session of requests that talks to no link-local address."""
    session = requests.Session()
    for scheme in ("https://", "http://"):
        session.mount(scheme, _Adapter())
    return session


def _checked(connection: socket.socket) -> socket.socket:
    peer = connection.getpeername()
    if isinstance(peer, tuple) and is_link_local(str(peer[0])):
        connection.close()
        raise LinkLocalError
    return connection


class _Http(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _checked(super()._new_conn())


class _Https(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _checked(super()._new_conn())


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _Https


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
