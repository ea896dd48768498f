"""A recording of one GPU's kernels -> that GPU's constants."""
