"""Counts optimizer steps of commands that ``advisor run`` starts; loaded when their Python starts.

``on_path`` is the folder that goes onto ``PYTHONPATH``; its one file lets ``steps`` wait for torch. Both need
the standard library alone and import as little of it as they can: each Python that starts pays for it.
"""
