"""The log engine: plain synchronous Python that opens no socket, reads no clock and rolls no
dice."""
