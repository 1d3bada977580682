"""What the tests share: servers to start, a node to start them with, and the leak check."""
