"""Code generated from the declarations; nothing here is written by hand."""
