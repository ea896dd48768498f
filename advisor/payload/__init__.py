"""What runs in the user's interpreter, started by ``advisor/payload/child.py``.

``run`` starts the script on a backend: ``fake`` pretends a GPU, ``real`` watches a device that is there;
``recording`` is what both find out about one iteration. The package is loaded under a private name, so every
import in here is relative and nothing but torch and the standard library is used.
"""
