"""What one GPU must hold, the largest batch it could, and what would make a script fit."""
