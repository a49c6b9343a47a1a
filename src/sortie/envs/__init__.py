"""Tasks, tools, rewards and needed resources of one domain."""
