"""The house itself: the leak check finds leaks, a missing prerequisite is named, every version is pinned."""
