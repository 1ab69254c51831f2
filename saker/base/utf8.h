// SPDX-License-Identifier: Apache-2.0
#pragma once

// UTF-8 from outside: validation (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing
// above U+10FFFF) and a safe way to quote foreign bytes in messages.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace saker {

// A message quotes at most this many bytes of a value.
inline constexpr std::size_t kMaxQuotedBytes = 120;

// Offset of the first byte that does not start or continue a character; nullopt for valid text.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// Throws kInvalidArgument, naming `what` and the byte offset, unless the text is valid.
void require_utf8(std::string_view text, std::string_view what);

// The text in single quotes, with control characters and invalid bytes as \xNN. Longer input is cut
// to `limit` bytes and "...".
std::string quote(std::string_view text, std::size_t limit = kMaxQuotedBytes);

// A path in full: a shortened path would be useless.
std::string quote_path(const std::filesystem::path& path);

}  // namespace saker
