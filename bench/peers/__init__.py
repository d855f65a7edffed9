"""Measurements of the other schedulers, in a separate environment. Each module is one process, as in `bench.ours`."""
