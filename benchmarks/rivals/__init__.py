"""What a user would run instead of Sortie, each in a virtual environment of its own under `.bench/`."""
