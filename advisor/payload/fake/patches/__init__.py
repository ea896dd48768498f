"""Changes to torch that let a script run on a GPU that is not there, one file each.

Every file has ``install(session)``. They are applied in the child process only, and
`tests/unit/profile/test_patches.py` shows for each file what goes wrong without it.
"""
