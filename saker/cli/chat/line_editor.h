// SPDX-License-Identifier: Apache-2.0
#pragma once

// Line editing with history on a terminal.

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

  // Ctrl-C is kInterrupted, Ctrl-D kEnd; a line that is not UTF-8 is lost. Throws kInternal when
  // the terminal fails.
  Line read(std::string_view prompt);

 private:
  struct Free {
    void operator()(SakerRsEditor* editor) const;
  };

  std::unique_ptr<SakerRsEditor, Free> editor_;
};

}  // namespace saker::cli
