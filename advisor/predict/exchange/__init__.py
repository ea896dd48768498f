"""What GPUs tell each other, and how long that takes."""
