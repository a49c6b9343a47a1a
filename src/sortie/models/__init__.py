"""Models: where weights come from, one decoder for engine and trainer, and its LoRA."""
