"""Proves that an mcp.json, as any common client writes it, gives the server that the client would start, or an error
that names file, server and key; and that nothing in it is passed on unread."""
