"""Studies behind the shipped constants and weights, and the training of those; no part of the product."""
