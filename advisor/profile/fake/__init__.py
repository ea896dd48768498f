"""The fake backend: CUDA tensors without memory or kernels, CPU tensors as ever.

Runs in the user's interpreter (see ``advisor/profile/child.py``) under a private package name, so every
import in here is relative and nothing but torch and the standard library is used.
"""
