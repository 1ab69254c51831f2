// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/records/shard.h"

#include "saker/base/checksum.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <charconv>
#include <span>
#include <string_view>
#include <system_error>

namespace saker::cli {
namespace {

// A whole number without a sign; -1 for other texts.
int read_number(std::string_view text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

}  // namespace

int shard_of(const Json& id, std::int64_t number, int count) {
  const std::string text = id.is_discarded() || id.is_null() ? fmt::to_string(number) : id.dump();
  const std::uint64_t sum = checksum(std::as_bytes(std::span(text)));
  return static_cast<int>(sum % static_cast<std::uint64_t>(count));
}

bool Shard::holds(const Json& id, std::int64_t number) const {
  return count == 1 || shard_of(id, number, count) == index;
}

std::string Shard::text() const {
  return fmt::format("{}/{}", index, count);
}

std::optional<Shard> read_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  const int index = read_number(text.substr(0, slash));
  const int count = slash == std::string_view::npos ? -1 : read_number(text.substr(slash + 1));
  const bool is_shard = index >= 0 && count <= kMostShards && index < count;
  return is_shard ? std::optional(Shard{index, count}) : std::nullopt;
}

CLI::Option* add_shard_option(CLI::App& command, Shard& shard) {
  const auto check = [](const std::string& text) {
    constexpr std::size_t kQuoted = 40;
    return read_shard(text) ? std::string()
                            : fmt::format(
                                  "got {}, expected I/N with I from 0 to N - 1, and N up to {}",
                                  quote(text, kQuoted),
                                  kMostShards
                              );
  };
  return command
      .add_option_function<std::string>(
          "--shard",
          [&shard](const std::string& text) { shard = read_shard(text).value(); },
          "Run only the records of share I of N, from 0/N on; 'saker merge' joins the outputs"
      )
      ->check(CLI::Validator(check, ""))
      ->type_name("I/N");
}

}  // namespace saker::cli
