"""The dialects, sans-I/O: bytes in, requests out; replies in, bytes out."""
