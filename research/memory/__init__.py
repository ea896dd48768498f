"""What fits in memory: predictions beside published and measured points."""
