"""The values of ``advisor.types``, which is where to import them from."""
