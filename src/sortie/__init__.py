"""Sortie trains LLM agents by reinforcement learning."""
