// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/io/writing_progress.h"

#include "saker/base/error.h"

#include <utility>

namespace saker::cli {

WritingProgress::WritingProgress(std::string label, Progress::Unit unit)
    : label_(std::move(label)), unit_(unit) {
  watcher_.set_handler([this] { interrupted_ = true; });
}

void WritingProgress::set(std::uint64_t done, std::uint64_t total) {
  require(!interrupted_, ErrorCode::kCancelled, "interrupted; nothing was written");
  if (!bar_) {
    bar_.emplace(total, label_, unit_);
  }
  bar_->set(done);
}

}  // namespace saker::cli
