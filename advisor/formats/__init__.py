"""Files: traces and recordings as versioned JSON, what people write as YAML, and their checks."""
