# SPDX-License-Identifier: Apache-2.0
"""page_snippets.py PAGE SOURCE: the C++ of a page of documentation as tests, one a block, so that it stays true."""

import pathlib
import re
import sys

HEAD = """// Made by tests/caches/page_snippets.py of {page}.
{includes}

#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <vector>

namespace {{

namespace mx = mlx::core;

"""
TEST = """TEST(CachesPage, Block{number}) {{
const saker::testing::TemporaryDir folder;
std::filesystem::current_path(folder.path());
{code}
}}

"""
UNUSED = "[[maybe_unused]] "


def test(number: int, block: str) -> str:
    code = [line for line in block.splitlines() if not line.startswith("#include")]
    # Values that a reader would use after the block.
    code = [UNUSED + line if re.match(r"(const auto|auto|const mx::array&) ", line) else line for line in code]
    return TEST.format(number=number, code="\n".join(code).strip("\n"))


def main(page: str, source: str) -> None:
    blocks = re.findall(r"```cpp\n(.*?)```", pathlib.Path(page).read_text(encoding="utf-8"), re.DOTALL)
    includes = sorted({line for block in blocks for line in block.splitlines() if line.startswith("#include")})
    tests = "".join(test(number, block) for number, block in enumerate(blocks, 1))
    text = HEAD.format(page=pathlib.Path(page).name, includes="\n".join(includes)) + tests + "}  // namespace\n"
    file = pathlib.Path(source)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
