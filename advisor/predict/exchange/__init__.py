"""What GPUs exchange, and how long that takes."""
