"""What is measured of the others, in an environment of their own. Each module is one process, as in `bench.ours`."""
