"""Proves what a `StdioServer` is: checked when built, immutable, comparable, silent about secrets; and where it can
come from: the SDK's parameters, a `stdio://` endpoint, an mcp.json entry."""
