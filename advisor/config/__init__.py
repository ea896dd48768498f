"""Settings and their layers, and what each layer may set."""
