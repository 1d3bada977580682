"""Measures what the project promises about speed and memory, beside those who do the same work. See README.md."""
