"""How long a test waits for something real: a process, a server, a browser, PostgreSQL.

It is reached only when something is broken, so it can be generous: a busy machine must not fail a test.
"""

PATIENCE = 120.0
"""Seconds."""
