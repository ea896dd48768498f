"""Runs a command as it is, and finds out what it took: time, steps, GPUs, and the rented machine."""
