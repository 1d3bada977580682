"""Proves that every error says what happened and what to do, keeps a stable code, is the built-in class that callers
expect, and survives pickling whole."""
