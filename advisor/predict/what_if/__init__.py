"""Changes of a script as changes of its trace, one file a kind: what profiling it again would record."""
