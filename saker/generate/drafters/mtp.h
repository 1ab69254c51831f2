// SPDX-License-Identifier: Apache-2.0
#pragma once

// Drafts by an MTP head of the target, see head_drafter.h.

#include "saker/generate/drafters/head_drafter.h"
#include "saker/models/model.h"
#include "saker/models/mtp.h"

#include <cstddef>

namespace saker::generate {

class Mtp final : public HeadDrafter {
 public:
  // See HeadDrafter. Throws kInvalidArgument unless the head fits this target.
  Mtp(const models::MtpHead& head, const models::Model& target, std::size_t kept_bytes = kKeptBytes)
      : HeadDrafter(fitting(head, target), target, kept_bytes) {}

 private:
  static const models::MtpHead& fitting(const models::MtpHead& head, const models::Model& target) {
    models::check_target(head, target.info());
    return head;
  }
};

}  // namespace saker::generate
