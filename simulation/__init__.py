"""The whole server without a machine: a disk, a clock and clients made of one seed."""
