"""A script's text -> the same with a change written in where that is safe; it is parsed, never run."""
