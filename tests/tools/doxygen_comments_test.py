# SPDX-License-Identifier: Apache-2.0
"""tools/doxygen_comments.py turns the comments of a header into doxygen's, line by line."""

import pathlib
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))
from doxygen_comments import translated  # noqa: E402

HEADER = """\
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Things. Plain C++.
//   a   first
//   b   second

#include <string>

namespace saker {

// One thing, as org@revision or "org@revision".
struct Thing {
  std::string name;  // Never `a<b>`.
  int count = 0;

  int twice() const { return 2 * count; }
  // Throws.
  void go(int by);  // NOLINT
};

class Other {
 public:
  using Text = std::string;
  Other(Other&&) noexcept;
  std::string name() const;
  virtual void run(int count) = 0;
  void stay(int count);
};

}  // namespace saker
"""


class DoxygenComments(unittest.TestCase):
    def setUp(self) -> None:
        self.lines = list(translated(HEADER))

    def test_lines_keep_their_numbers(self) -> None:
        self.assertEqual(len(self.lines), len(HEADER.splitlines()))
        self.assertEqual(self.lines[9], "namespace saker {")
        self.assertEqual(self.lines[-1], "}  // namespace saker")

    def test_first_comment_is_the_file_s(self) -> None:
        self.assertEqual(self.lines[0], "// SPDX-License-Identifier: Apache-2.0")
        self.assertEqual(self.lines[2:4], ["/// @file", "/// Things. Plain C++."])

    def test_indented_lines_stay(self) -> None:
        self.assertEqual(self.lines[4:6], ["/// @verbatim   a   first", "///   b   second @endverbatim"])

    def test_orders_are_escaped_but_in_code_and_quotations(self) -> None:
        self.assertEqual(self.lines[11], '/// One thing, as org\\@revision or "org@revision".')
        self.assertEqual(self.lines[13], "  std::string name;  ///< Never `a<b>`.")

    def test_names_that_say_all(self) -> None:
        self.assertEqual(self.lines[14], "  int count = 0;  ///< count")
        self.assertEqual(self.lines[16], "  int twice() const { return 2 * count; }  ///< twice")

    def test_functions_need_a_comment(self) -> None:
        self.assertEqual(self.lines[17:19], ["  /// Throws.", "  void go(int by);  // NOLINT"])

    def test_types_moves_and_pure_functions_take_their_names(self) -> None:
        self.assertEqual(self.lines[21], "/** Other */ class Other {")
        self.assertEqual(self.lines[23], "/** Text */   using Text = std::string;")
        self.assertEqual(self.lines[24], "/** Other */   Other(Other&&) noexcept;")
        self.assertEqual(self.lines[25], "/** name */   std::string name() const;")
        self.assertEqual(self.lines[26], "/** run */   virtual void run(int count) = 0;")
        self.assertEqual(self.lines[27], "  void stay(int count);")


if __name__ == "__main__":
    unittest.main()
