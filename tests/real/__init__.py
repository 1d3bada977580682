"""Proves that real servers from npm and PyPI are listed, called and closed through the SDK, and leave nothing."""
