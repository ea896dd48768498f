"""Learned efficiency of kernels: small networks, trained by ``training``, run by numpy."""
