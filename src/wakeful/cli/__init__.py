"""The command line: a client of the daemon, plus the commands that work without one."""
