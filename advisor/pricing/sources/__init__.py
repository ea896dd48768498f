"""Where prices come from: each source answers the same protocol."""
