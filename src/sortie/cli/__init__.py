"""The command line: nouns and verbs. Its modules import nothing heavy at the top, so that help answers at once."""
