// SPDX-License-Identifier: Apache-2.0
// MiMo: Qwen 2's layers. Its heads that predict more tokens are not read.
#include "saker/models/architecture.h"

#include <string_view>

namespace saker::models {

Architecture mimo() {
  Architecture result = qwen2();
  result.tensors.is_unread = [](std::string_view name, const Json&) {
    return name.starts_with("model.mtp_layers.");
  };
  return result;
}

}  // namespace saker::models
