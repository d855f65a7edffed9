"""Programs of the demo. Each is started as a script and uses only the standard library."""
