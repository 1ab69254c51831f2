// SPDX-License-Identifier: Apache-2.0
#pragma once

// Line editing with history on a terminal.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct SakerRsEditor;

namespace saker::cli {

struct Line {
  enum class Kind { kText, kInterrupted, kEnd, kNotUtf8 };

  Kind kind = Kind::kEnd;
  std::string text;
};

class LineEditor {
 public:
  // The history is read from and, when the editor goes, written to `history`; an empty path keeps
  // none.
  explicit LineEditor(const std::filesystem::path& history);

  // What Tab completes, a line each.
  struct Words {
    std::string phrases;  // Whole commands: "/think off"; those that go on end with a space.
    std::string files;    // What comes before the name of a file: "/load ".
  };

  // Whether prompts are coloured.
  enum class Prompts : std::uint8_t { kPlain, kColored };

  void prepare(const Words& words, Prompts prompts);

  // A line may have several where it says that it goes on: a backslash at the end, or three
  // quotation marks. Ctrl-C is kInterrupted, Ctrl-D kEnd; a line that is not UTF-8 is lost. Throws
  // kInternal when the terminal fails.
  Line read(std::string_view prompt);

 private:
  struct Free {
    void operator()(SakerRsEditor* editor) const;
  };

  std::unique_ptr<SakerRsEditor, Free> editor_;
};

}  // namespace saker::cli
