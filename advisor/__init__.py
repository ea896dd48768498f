"""Where should a PyTorch training script run? Importing this package imports nothing else."""

__version__ = "0.1.0"
