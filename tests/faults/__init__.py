"""Faults that the executor must survive: each test names its behaviour, and the number of the fault in a comment."""
