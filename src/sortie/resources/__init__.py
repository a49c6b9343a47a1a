"""Leases of what rollouts need, granted by one scheduling engine."""
