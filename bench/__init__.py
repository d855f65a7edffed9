"""Benchmark of Wakeful against its alternatives, in the same run. See docs/bench.md."""
