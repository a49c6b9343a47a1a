"""Isolated places to run code: no network, a private file system, limits that hold for the whole process tree."""
