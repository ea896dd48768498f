"""What every room knows: values, units, errors, GPUs, names; the standard library alone."""
