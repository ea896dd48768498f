"""Learned efficiency of kernels: small networks, trained by ``advisor.predict.training``, run by numpy."""
