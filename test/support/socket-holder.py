"""Holds a listening socket as systemd does, and runs a program with it as descriptor 3, again and
again until it ends with something else than 0. Prints the port, then what the program prints."""
import os
import socket
import subprocess
import sys

held = socket.create_server(("127.0.0.1", 0))
print(held.getsockname()[1], flush=True)
os.dup2(held.fileno(), 3)
os.set_inheritable(3, True)
while subprocess.call(sys.argv[1:], pass_fds=(3,)) == 0:
    pass
