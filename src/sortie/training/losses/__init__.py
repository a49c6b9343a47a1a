"""Losses as pure functions, one file each."""
