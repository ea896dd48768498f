"""The GPU that is not there: CUDA tensors without memory or kernels, CPU tensors as ever."""
