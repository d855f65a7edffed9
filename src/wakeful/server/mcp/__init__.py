"""The tools of agents over MCP, by the official SDK, which is imported late: it is an extra, and takes a second."""
