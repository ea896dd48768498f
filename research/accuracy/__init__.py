"""Accuracy of what our studies fitted, judged by the harness in `benchmarks.accuracy`."""
