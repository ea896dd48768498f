"""Changes of a script as changes of its trace, one file each: what profiling it again would record."""
