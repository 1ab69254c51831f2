# SPDX-License-Identifier: Apache-2.0
"""The program, or a shell, on a terminal of its own, as a person sees it."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from saker import PROGRAM


def plain(text):
    """Without orders to the terminal, and without lines that were cleared again."""
    text = re.sub(r"\r\x1b\[K[^\r\n]*\r(?=\x1b\[K)", "", text)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r", "")


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, *args, state, program=PROGRAM, term="xterm", columns=0, env=None, cwd=None):
        self.master, slave = pty.openpty()
        self.resize(columns)
        env = {**os.environ, "XDG_STATE_HOME": str(state), "TERM": term, "NO_COLOR": "1", **(env or {})}
        self.process = subprocess.Popen(
            [program, *map(str, args)], stdin=slave, stdout=slave, stderr=slave, env=env, cwd=cwd, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.output = ""

    def expect(self, text, timeout=60):
        """Waits until `text` is shown; returns what came before and with it."""
        self.read_until(lambda: text in self.output, repr(text), timeout)
        seen, self.output = self.output.split(text, 1)
        return seen + text

    def prompt(self, timeout=60):
        """Waits for the prompt at the end of all that is shown; returns what came before it, without orders to the terminal."""
        self.read_until(lambda: plain("\n" + self.output).endswith("\n> "), "a prompt", timeout)
        seen, self.output = plain(self.output), ""
        return seen.removesuffix("> ")

    def read_until(self, shown, what, timeout):
        end = time.monotonic() + timeout
        while not shown():
            ready, _, _ = select.select([self.master], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"{what} not shown; got {self.output!r}")
            try:
                chunk = os.read(self.master, 65536)
            except OSError as error:
                raise AssertionError(f"the program ended before {what}; got {self.output!r}") from error
            self.output += chunk.decode(errors="replace")

    def resize(self, columns, rows=24):
        """0 columns: a terminal that does not say."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows if columns else 0, columns, 0, 0))

    def echoes(self):
        return bool(termios.tcgetattr(self.master)[3] & termios.ECHO)

    def set_echo(self):
        settings = termios.tcgetattr(self.master)
        settings[3] |= termios.ECHO
        termios.tcsetattr(self.master, termios.TCSANOW, settings)

    def ask(self, line, until=None, timeout=60):
        """Types a line; returns what is shown behind it until the next prompt, or `until`."""
        self.type(line + "\r")
        self.expect("\n")
        return plain(self.expect(until, timeout)) if until else self.prompt(timeout)

    def type(self, text):
        os.write(self.master, text if isinstance(text, bytes) else text.encode())

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
