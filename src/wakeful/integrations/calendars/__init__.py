"""Calendar files (RFC 5545) that name excluded days."""
