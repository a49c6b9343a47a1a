"""Models: where weights come from, one decoder for engine and trainer, and its LoRA."""

from sortie.models.registry import ModelInfo, get, list_models, resolve, show

__all__ = ["ModelInfo", "get", "list_models", "resolve", "show"]
