"""Measures kernels one by one on this machine's device."""
