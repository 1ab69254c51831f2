// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/transcript.h"

#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"
#include "saker/base/json/json_numbers.h"
#include "saker/cli/io/output.h"

#include <cstdlib>
#include <string>
#include <system_error>

namespace saker::cli {
namespace {

bool is_conversation(const std::filesystem::path& path) {
  try {
    load_conversation(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::filesystem::path named_file(std::string_view name) {
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/' && (name == "~" || name.starts_with("~/"))) {
    return std::filesystem::path(home) / name.substr(name.size() > 1 ? 2 : 1);
  }
  return name;
}

void save_conversation(const Conversation& conversation, const std::filesystem::path& path) {
  std::error_code ignored;
  require(
      !std::filesystem::exists(path, ignored) || is_conversation(path),
      ErrorCode::kInvalidArgument,
      "{}: is there and holds no conversation: it is not replaced",
      path.string()
  );
  std::string text = "[";
  for (const Json& message : conversation.messages()) {
    text += (text.size() > 1 ? ",\n " : "\n ") + write_json(message);
  }
  text += "\n]\n";
  AtomicFile file(path, FileReaders::kOwner);
  file.write(text);
  file.commit();
}

Conversation load_conversation(const std::filesystem::path& path) {
  return Conversation::parse(parse_json(read_text(path), path.string()), path.string());
}

}  // namespace saker::cli
