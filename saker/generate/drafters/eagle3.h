// SPDX-License-Identifier: Apache-2.0
#pragma once

// Drafts by an EAGLE-3 head of the target, see head_drafter.h.

#include "saker/generate/drafters/head_drafter.h"
#include "saker/models/eagle3.h"
#include "saker/models/model.h"

#include <cstddef>

namespace saker::generate {

class Eagle3 final : public HeadDrafter {
 public:
  // See HeadDrafter. Throws kInvalidArgument unless the head fits this target.
  Eagle3(
      const models::Eagle3Head& head,
      const models::Model& target,
      std::size_t kept_bytes = kKeptBytes
  )
      : HeadDrafter(fitting(head, target), target, kept_bytes) {}

 private:
  static const models::Eagle3Head& fitting(
      const models::Eagle3Head& head, const models::Model& target
  ) {
    models::check_target(head, target.info());
    return head;
  }
};

}  // namespace saker::generate
