"""A profile that torch.profiler exported -> Trace."""
