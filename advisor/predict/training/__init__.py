"""Fits the learned predictor's weights from measured kernels; needs torch and is never imported at run time."""
