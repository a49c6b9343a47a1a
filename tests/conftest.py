"""Its presence puts this folder on the path of every test, for the helpers beside it."""
