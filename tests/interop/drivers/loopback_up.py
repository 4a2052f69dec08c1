"""Brings up the loopback interface of a network namespace, then becomes the command it is given."""

import fcntl
import os
import socket
import struct
import sys

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    request = struct.pack("16sH14x", b"lo", 0)
    name, flags = struct.unpack("16sH14x", fcntl.ioctl(control, SIOCGIFFLAGS, request))
    fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14x", name, flags | IFF_UP))
os.execvp(sys.argv[1], sys.argv[1:])
