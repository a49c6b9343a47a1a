"""The training loop, readable top to bottom in `loop.py`, and what it is made from."""
