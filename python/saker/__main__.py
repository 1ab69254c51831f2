# SPDX-License-Identifier: Apache-2.0
"""``python -m saker`` is the program ``saker``."""

import os
import sys

from saker import bundled

if __name__ == "__main__":
    program = str(bundled.program())
    os.execv(program, [program, *sys.argv[1:]])
