"""Sampling: the client contract, the shipped fake, the embedded engine, compatible servers, and renderers."""
