// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/line_editor.h"

#include "saker/base/error.h"

#include "saker_rs_terminal.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace saker::cli {
namespace {

const std::uint8_t* bytes(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

std::string take(SakerRsBytes bytes) {
  std::string text(reinterpret_cast<const char*>(bytes.data), bytes.size);
  saker_rs_bytes_free(bytes);
  return text;
}

}  // namespace

LineEditor::LineEditor(const std::filesystem::path& history) {
  const std::string path = history.string();
  SakerRsEditor* editor = nullptr;
  SakerRsBytes error{};
  if (!saker_rs_editor_new(bytes(path), path.size(), &editor, &error)) {
    throw Error(ErrorCode::kInternal, "line editor: " + take(error));
  }
  editor_.reset(editor);
}

void LineEditor::prepare(const Words& words, Prompts prompts) {
  SakerRsBytes error{};
  const bool ok = saker_rs_editor_prepare(
      editor_.get(),
      bytes(words.phrases),
      words.phrases.size(),
      bytes(words.files),
      words.files.size(),
      prompts == Prompts::kColored,
      &error
  );
  if (!ok) {
    throw Error(ErrorCode::kInternal, "line editor: " + take(error));
  }
}

Line LineEditor::read(std::string_view prompt) {
  SakerRsBytes out{};
  SakerRsBytes error{};
  switch (saker_rs_editor_read(editor_.get(), bytes(prompt), prompt.size(), &out, &error)) {
    case kSakerRsLineText:
      return {Line::Kind::kText, take(out)};
    case kSakerRsLineInterrupted:
      return {Line::Kind::kInterrupted, {}};
    case kSakerRsLineEnd:
      return {Line::Kind::kEnd, {}};
    case kSakerRsLineNotUtf8:
      return {Line::Kind::kNotUtf8, {}};
    case kSakerRsLineError:
      break;
  }
  throw Error(ErrorCode::kInternal, "line editor: " + take(error));
}

void LineEditor::Free::operator()(SakerRsEditor* editor) const {
  saker_rs_editor_free(editor);
}

}  // namespace saker::cli
