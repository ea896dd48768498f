"""Changes to torch that let a script run on a GPU that is not there, grouped by subject.

Each is a function ``install_NAME(session)``; `patching.py` lists them. They are applied in the child process
only, and `tests/unit/profile/test_patches.py` shows for each what goes wrong without it.
"""
