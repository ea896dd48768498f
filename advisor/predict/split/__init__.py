"""A model that is supposed to be divided among GPUs: what each runs, and what they exchange."""
