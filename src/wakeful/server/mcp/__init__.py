"""Agents' tools over MCP, with the official SDK, which is imported late: it is an extra, and takes a second."""
