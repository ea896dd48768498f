"""Use cases: a request, settings and a listener in, values out.

The command line (``advisor.cli``) and Python (``advisor.api``) call the same functions; nothing here parses,
prints or ends the process. A request is a frozen dataclass. A `Listener` gets notes, warnings and progress
while a use case runs, and says what its caller calls an argument. What needs the database raises StoreError
where it cannot be reached, read or written.
"""
