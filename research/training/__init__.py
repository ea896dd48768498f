"""Fits weights and constants to measured kernels; needs torch and pandas, never imported at run time."""
