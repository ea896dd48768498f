"""A small web service over the store that only reads: pages, the same answers as JSON, and metrics."""
