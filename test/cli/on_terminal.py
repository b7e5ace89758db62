# Runs a program on a terminal of its own: python3 on_terminal.py <keys> <text to wait for> <program> [arguments]
# ON_TERMINAL_SIZE: its rows and columns, such as 24x80.
import fcntl, os, pty, struct, sys, termios

keys, text = sys.argv[1].encode().decode("unicode_escape").encode(), sys.argv[2].encode()
pid, fd = pty.fork()
size = os.environ.get("ON_TERMINAL_SIZE")
if pid == 0:
    if size:
        rows, columns = map(int, size.split("x"))
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
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
