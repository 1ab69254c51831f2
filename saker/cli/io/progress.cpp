// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/io/progress.h"

#include "saker/base/characters/printable.h"

#include "saker_rs_terminal.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace saker::cli {

Progress::Progress(std::uint64_t total, std::string_view label, Unit unit) {
  const std::string shown = printable_line(label);
  bar_.reset(saker_rs_progress_new(
      total,
      reinterpret_cast<const std::uint8_t*>(shown.data()),
      shown.size(),
      static_cast<std::uint8_t>(unit)
  ));
}

void Progress::set(std::uint64_t position) {
  saker_rs_progress_set(bar_.get(), position);
}

void Progress::Free::operator()(SakerRsProgress* progress) const {
  saker_rs_progress_free(progress);
}

}  // namespace saker::cli
