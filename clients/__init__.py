"""One client for every dialect, with a Trio face and a synchronous one."""
