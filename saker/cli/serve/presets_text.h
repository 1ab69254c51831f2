// SPDX-License-Identifier: Apache-2.0
#pragma once

// The text of a file of presets, and where its members are.

#include "saker/base/json/json.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace saker::cli {

class PresetsText {
 public:
  // A file "*.toml" is TOML, others are JSON. Throws kCorruptData, with the place, for what is
  // neither, for a key that is there twice, and for more than 1 MB; what reading files throws.
  explicit PresetsText(const std::filesystem::path& file);

  // The members in the file's order.
  const Json& json() const { return json_; }

  // "FILE:LINE: MESSAGE" with the line of this member, or of the nearest one around it that is
  // there. Members are named as in messages: "models.coder.aliases[0]".
  std::string located(std::string_view member, std::string_view message) const;

 private:
  std::string name_;
  Json json_;
  std::map<std::string, std::size_t, std::less<>> lines_;
};

}  // namespace saker::cli
