"""Logs of spot machines -> how often they go away and for how long, beside others of their class."""
