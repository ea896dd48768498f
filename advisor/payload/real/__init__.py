"""Real devices: operators run unchanged and are recorded."""
