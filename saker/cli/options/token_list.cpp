// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/options/token_list.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <charconv>
#include <cstddef>
#include <system_error>

namespace saker::cli {

std::vector<std::int32_t> parse_token_list(std::string_view flag, std::string_view text) {
  std::vector<std::int32_t> tokens;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at != end) {
    std::int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    const bool ends_well = next == end || (*next == ',' && next + 1 != end);
    require(
        error == std::errc() && ends_well,
        ErrorCode::kInvalidArgument,
        "{}: got {} at character {}, expected ids with commas between, as in 1,2,3",
        flag,
        quote({at, static_cast<std::size_t>(end - at)}, 12),
        at - text.data() + 1
    );
    tokens.push_back(id);
    at = next == end ? end : next + 1;
  }
  return tokens;
}

}  // namespace saker::cli
