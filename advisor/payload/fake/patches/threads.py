"""Threads of the script see the pretended GPU as well.

A dispatch mode holds for one thread; a loop, a prefetcher or a metric computed in another one would
meet a torch without CUDA. Each thread enters a mode of its own that reports to the same session.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Wrap what a thread runs when it is started."""
    start = threading.Thread.start

    def start_with_mode(thread: Any) -> None:
        run = thread.run

        def run_with_mode() -> None:
            with session.pretending.for_thread():
                run()

        thread.run = run_with_mode
        start(thread)

    replace(threading.Thread, start=start_with_mode)
