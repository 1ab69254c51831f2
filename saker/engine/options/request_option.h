// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of a request in one table: flags of `run` and `generate`, members of JSON records,
// settings of a chat or a Modelfile, and keywords of Python all come from it. So do the tables in
// docs/. An option has one name everywhere. Threading: constants.

#include "saker/base/json/json.h"
#include "saker/engine/request.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace saker::engine {

enum class OptionKind : std::uint8_t {
  kInteger,
  kNumber,
  kFlag,
  kText,
  kTexts,  // A text or a list of texts.
  kObject,
  kIntegerOrAuto,
  kSwitch,  // True, false or "auto".
  kPath,
  kJson,      // Any value.
  kSchema,    // An object, true or false; on the command line also a file with it.
  kTextFile,  // A text; on the command line the file with it.
  kList,      // A list; on the command line also a file with it.
};

// Where an option can be given.
struct Doors {
  bool run = true;       // As a flag of `run`.
  bool generate = true;  // As a flag of `generate`.
  bool record = true;    // As a member of a record of `generate`.
  bool setting = true;   // By `/set` in a chat, and as a PARAMETER of a Modelfile.
  bool keyword = true;   // As a keyword of Python's `generate` and `stream`.
};

// Smallest and largest value; infinite: no bound. A value outside fails, -1 of `max_tokens` aside.
struct OptionRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

struct RequestOption {
  static constexpr std::size_t kMaxAliases = 2;
  // REQUIRES: the value has the option's kind. Throws kInvalidArgument, with the name in front.
  using Set = void (*)(const RequestOption& option, const Json& value, Request& request);

  std::string_view name = {};                              // The flag has '-' for '_'.
  std::array<std::string_view, kMaxAliases> aliases = {};  // Other accepted names, then empty ones.
  OptionKind kind = OptionKind::kText;
  std::string_view group = {};         // Its heading in help and documents.
  std::string_view help = {};          // One line without a full stop.
  std::string_view program_help = {};  // For Python, if `help` is about the command line.
  std::string_view fallback = {};      // The default in words; empty: none.
  std::string_view values = {};        // "a|b|c", or the type in help; empty: the kind's.
  OptionRange range = {};
  Doors doors = {};
  Set set = nullptr;

  std::span<const std::string_view> other_names() const;
  bool has_name(std::string_view key) const;
};

std::span<const RequestOption> request_options();

// The option with this name or other name; null if there is none.
const RequestOption* find_option(std::string_view name);

// The help with the default behind it: "Temperature; 0: the most probable token [0]".
std::string help_with_default(const RequestOption& option);

// The table as JSON, for tools and for other languages: a list of objects with the members of
// RequestOption. `kind` is a word, unbounded ends of a range are null, `doors` is a list of names.
Json option_table();

}  // namespace saker::engine
