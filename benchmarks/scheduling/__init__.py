"""Task schedulers against each other on simulated learners: no LLM, many seeds, the truth known."""
