"""Logs of spot machines -> how often they go away, for how long, and how a class of machines corrects that."""
