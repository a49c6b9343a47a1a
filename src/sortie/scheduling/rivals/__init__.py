"""Published schedulers on the same contract, to compare with: each names its paper, and what is ours in it."""
