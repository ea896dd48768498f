"""Studies that the product does not need: each records, fits or judges something once."""
