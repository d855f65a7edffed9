"""The command line: a client of the daemon, and what works without one."""
