"""Adapters trained behind a few verbs: forward_backward, optim_step, save, publish."""
