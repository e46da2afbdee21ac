# Runs a command on a terminal of its own, types the inputs at its questions, and reports the screen.
import codecs
import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time

PATIENCE_SECONDS = 20

spec = json.load(sys.stdin)
pid, terminal = pty.fork()
if pid == 0:
    # Before the command starts, which reads it at once.
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", spec["rows"], spec["columns"], 0, 0))
    os.execvpe(spec["argv"][0], spec["argv"], spec["env"])

# What is read at once may end within a character.
decoder = codecs.getincrementaldecoder("utf-8")("replace")

screen = ""
seen = 0
inputs = list(spec["inputs"])
end = time.monotonic() + PATIENCE_SECONDS
while time.monotonic() < end:
    ready, _, _ = select.select([terminal], [], [], 0.1)
    if ready:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            break
        if not chunk:
            break
        screen += decoder.decode(chunk)
    if inputs:
        match = re.search(inputs[0][0], screen[seen:])
        if match:
            seen += match.end()
            # What is typed before the question is really open would be lost.
            time.sleep(0.1)
            os.write(terminal, inputs.pop(0)[1].encode())
_, status = os.waitpid(pid, os.WNOHANG)
deadline = time.monotonic() + 5
while _ == 0 and time.monotonic() < deadline:
    time.sleep(0.02)
    _, status = os.waitpid(pid, os.WNOHANG)
if _ == 0:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    code = None
else:
    code = os.waitstatus_to_exitcode(status)
json.dump({"screen": screen, "code": code}, sys.stdout)
