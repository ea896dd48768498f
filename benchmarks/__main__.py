"""``make bench``: speed as ratios, so that a noisy machine does not decide."""

from __future__ import annotations

from benchmarks import native, prediction, prices, profiling, queue, receipts, recommend, startup


def main() -> None:
    """Run all of them."""
    startup.main()
    native.main()
    queue.main()
    profiling.main()
    prediction.main()
    prices.main()
    receipts.main()
    recommend.main()


if __name__ == "__main__":
    main()
