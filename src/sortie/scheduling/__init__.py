"""Which tasks next, and how many rollouts each."""
