"""Measures calls of operators, one after the other, as the parent's grid describes them."""
