"""Readers of other schedulers: what they keep, as entries. One module for each kind."""
