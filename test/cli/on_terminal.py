# Runs a program on a terminal of its own: python3 on_terminal.py <keys> <text to wait for> <program> [arguments]
import os, pty, sys

keys, text = sys.argv[1].encode().decode("unicode_escape").encode(), sys.argv[2].encode()
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[3], sys.argv[3:])
seen, sent = b"", False
while True:
    try:
        chunk = os.read(fd, 65536)
    except OSError:
        break
    if not chunk:
        break
    seen += chunk
    if not sent and text in seen:
        os.write(fd, keys)
        sent = True
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 255)
