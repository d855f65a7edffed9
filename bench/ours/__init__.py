"""The measurements of Wakeful. Each module runs as a process and prints its figures as JSON lines."""
