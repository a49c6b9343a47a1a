"""Environments that ship with Sortie."""
