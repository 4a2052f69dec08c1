"""The RustLog dialect: length-framed JSON and one-byte binary commands on one port."""
