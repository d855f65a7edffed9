"""Wakeful beside what people would use instead, measured in the same run. See docs/bench.md."""
