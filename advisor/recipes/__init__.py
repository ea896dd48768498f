"""Training scripts for who has none yet: each recipe is an entry of a table and a short script."""
