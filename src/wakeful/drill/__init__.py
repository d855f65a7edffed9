"""The drill: real daemons and injected faults on this machine, and the checker that counts what happened."""
