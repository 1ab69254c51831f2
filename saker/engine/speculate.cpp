// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/speculate.h"

#include "saker/base/error.h"

#include <algorithm>
#include <string_view>

namespace saker::engine {

Speculate parse_speculate(std::string_view name) {
  const auto* const found =
      std::ranges::find(kSpeculateNames, name, [](const auto& pair) { return pair.first; });
  require(
      found != kSpeculateNames.end(),
      ErrorCode::kInvalidArgument,
      "speculate: got {:?}, expected none, prompt-lookup, draft, mtp, dflash or eagle3",
      name
  );
  return found->second;
}

Acceptance parse_acceptance(std::string_view name) {
  const auto* const found =
      std::ranges::find(kAcceptanceNames, name, [](const auto& pair) { return pair.first; });
  require(
      found != kAcceptanceNames.end(),
      ErrorCode::kInvalidArgument,
      "acceptance: got {:?}, expected coupled or rejection",
      name
  );
  return found->second;
}

}  // namespace saker::engine
