"""The command line: nouns and verbs."""
