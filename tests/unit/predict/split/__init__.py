"""Models that are supposed to be divided among GPUs."""
