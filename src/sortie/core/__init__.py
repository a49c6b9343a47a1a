"""Nouns of the system: plain records, errors, configuration and run-folder files. Nothing here imports torch."""
