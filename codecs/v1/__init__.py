"""The V1 dialect: one pipe-delimited line a request, one line a reply."""
