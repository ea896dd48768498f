"""Bias of the chosen: whether the cheapest of many dated prices costs what it was expected to."""
