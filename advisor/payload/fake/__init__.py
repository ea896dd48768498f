"""The fake GPU: CUDA tensors without memory or kernels; CPU tensors stay real."""
