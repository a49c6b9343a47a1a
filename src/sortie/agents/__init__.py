"""Tools, rewards and agents, written as plain typed functions."""
