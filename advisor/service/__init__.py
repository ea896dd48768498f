"""Use cases: settings and a request in, values out; the command line and Python call the same."""
