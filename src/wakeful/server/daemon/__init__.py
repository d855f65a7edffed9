"""The daemon: one home folder, one clock, one API."""
