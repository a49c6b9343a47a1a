"""Messages to tokens and back, one file per model family."""
