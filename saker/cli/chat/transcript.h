// SPDX-License-Identifier: Apache-2.0
#pragma once

// Conversations as files: a list of messages in JSON, as clients of OpenAI's API take them.

#include "saker/cli/chat/conversation.h"

#include <filesystem>
#include <string_view>

namespace saker::cli {

// A user's file name as a path: a leading "~" is the home folder.
std::filesystem::path named_file(std::string_view name);

// Writes the file whole or not at all, readable for its owner alone. Throws kInvalidArgument if the
// file exists and holds something other than a conversation.
void save_conversation(const Conversation& conversation, const std::filesystem::path& path);

// Throws kNotFound, kCorruptData or kInvalidArgument.
Conversation load_conversation(const std::filesystem::path& path);

}  // namespace saker::cli
