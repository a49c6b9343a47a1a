"""Groups of agent loops, run and scored; one bad rollout costs one rollout."""
