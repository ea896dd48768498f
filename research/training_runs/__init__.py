"""Whole training runs that were published with their rates, which only judge."""
