"""What all tests share."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# A noisy machine must not fail a law, and CI must not fail by luck; at a desk, new examples each time.
settings.register_profile("advisor", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("advisor")

# Started by nohup or in the background of a shell, we would hand on that interrupts are ignored.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)
