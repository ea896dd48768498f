"""Several GPUs and nodes: predictions beside published rates, and the constants that are fitted to a part."""
