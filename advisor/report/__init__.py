"""Values -> text, JSON, CSV, Markdown. Nothing here computes; nothing elsewhere prints."""
