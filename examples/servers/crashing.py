"""A server that reads its first request, complains, and dies."""

from __future__ import annotations

import sys

sys.stdin.readline()
print("loading the settings", file=sys.stderr)
print("fatal: no API key in the settings", file=sys.stderr)
sys.exit(3)
