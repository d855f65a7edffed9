"""The kinds of settings: how each value in the file is read, refused and described in the reference."""
