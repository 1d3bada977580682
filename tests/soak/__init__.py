"""The tests that take minutes (`make soak`)."""
