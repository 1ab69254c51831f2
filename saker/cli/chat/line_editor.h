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
  // Reads the history from `history`; the destructor writes it back. An empty path keeps no
  // history.
  explicit LineEditor(const std::filesystem::path& history);

  // Completions of the Tab key, one per line.
  struct Words {
    std::string phrases;  // Whole commands ("/think off"); a trailing space: more follows.
    std::string files;    // Text before the name of a file: "/load ".
  };

  // How prompts look.
  enum class Prompts : std::uint8_t { kPlain, kColored };

  void prepare(const Words& words, Prompts prompts);

  // The result may have several lines: a backslash at the end, or three quotation marks, continue a
  // line. Ctrl-C gives kInterrupted, Ctrl-D kEnd. A line that is not UTF-8 is lost. Throws
  // kInternal if the terminal fails.
  Line read(std::string_view prompt);

 private:
  struct Free {
    void operator()(SakerRsEditor* editor) const;
  };

  std::unique_ptr<SakerRsEditor, Free> editor_;
};

}  // namespace saker::cli
