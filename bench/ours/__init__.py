"""What is measured of Wakeful. Each module is one process; it prints its figures as JSON lines."""
