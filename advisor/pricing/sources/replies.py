"""Bodies of replies, read within a time and a size as a whole, whatever the server sends."""

from __future__ import annotations

import threading
from time import monotonic
from typing import Protocol

from advisor.core.deadlines import LateError, left_s
from advisor.core.units import MB

REPLY_BYTES = 32 * MB
"""Most that one reply may hold, unpacked: pages of the clouds hold 8 MB at most."""
PULL_BYTES = 512 * MB
"""Most that one source may send in a pull: ninety days of spot prices of all regions are a third of that."""
_CHUNK_BYTES = 65536


class LongReplyError(ValueError):
    """A reply, or all replies of a pull, hold more than anything true could."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"more than {most_bytes // MB} MB")
        self.most_bytes = most_bytes


class Allowance:
    """How much a source may still send in a pull; its threads share it.

    Args:
        most_bytes: over all replies.
    """

    def __init__(self, most_bytes: int = PULL_BYTES) -> None:
        self._most_bytes = self._left_bytes = most_bytes
        self._lock = threading.Lock()

    def take(self, num_bytes: int) -> None:
        """Count what came.

        Raises:
            LongReplyError: it is more than was left.
        """
        with self._lock:
            self._left_bytes -= num_bytes
            if self._left_bytes < 0:
                raise LongReplyError(self._most_bytes)


class _Body(Protocol):
    """A body that urllib3 has not read yet."""

    def read1(self, amt: int, *, decode_content: bool) -> bytes: ...

    def close(self) -> None: ...


def read_whole(raw: _Body, allowance: Allowance, *, within_s: float, unpacks: bool = False) -> bytes:
    """The body of a reply.

    Args:
        raw: urllib3's response, unread; it is closed unless it was read to its end.
        allowance: of the pull.
        within_s: for all of it; less where the call as a whole ends earlier.
        unpacks: whether to unpack what is packed (gzip).

    Raises:
        LongReplyError: it holds too much.
        LateError: its end did not come in time.
    """
    end_s = monotonic() + min(within_s, left_s())
    body = bytearray()
    try:
        # read1 returns what there is: read would wait for a whole chunk.
        while chunk := raw.read1(_CHUNK_BYTES, decode_content=unpacks):
            body += chunk
            if len(body) > REPLY_BYTES:
                raise LongReplyError(REPLY_BYTES)
            allowance.take(len(chunk))
            if monotonic() > end_s:
                raise LateError(within_s)
    except BaseException:
        raw.close()
        raise
    return bytes(body)
