# SPDX-License-Identifier: Apache-2.0
"""linked_rooms.py NM PROGRAM ROOM...: fails if a program holds functions of these folders of saker/."""

import collections
import re
import subprocess
import sys


def main(nm: str, program: str, *rooms: str) -> int:
    symbols = subprocess.run([nm, "--demangle", "--defined-only", program], check=True, capture_output=True, text=True).stdout
    count = collections.Counter(re.findall(r"\bsaker::(\w+)::", symbols))
    found = {room: count[room] for room in rooms if count[room]}
    print(f"{program}: {found or 'none of ' + ', '.join(rooms)}")
    return 1 if found or not count["caches"] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
