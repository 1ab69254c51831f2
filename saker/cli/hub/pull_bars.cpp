// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/hub/pull_bars.h"

#include "saker/base/characters/printable.h"

#include "saker_rs.h"

#include <cstdint>
#include <span>
#include <string>

namespace saker::cli {
namespace {

bool is_on_its_way(hub::FileState state) {
  return state == hub::FileState::kElsewhere || state == hub::FileState::kFetching ||
         state == hub::FileState::kVerifying;
}

}  // namespace

PullBars::PullBars(const std::string& label)
    : group_(saker_rs_progress_group_new()), all_(make_bar(label, 0)) {}

PullBars::Bar PullBars::make_bar(const std::string& label, std::uint64_t total) const {
  const std::string shown = printable_line(label);
  return Bar(saker_rs_progress_group_add(
      group_.get(), total, reinterpret_cast<const std::uint8_t*>(shown.data()), shown.size()
  ));
}

void PullBars::show(std::span<const hub::FileProgress> files) {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  for (const hub::FileProgress& file : files) {
    done += file.done;
    total += file.total;
    if (!is_on_its_way(file.state)) {
      files_.erase(file.path);
      continue;
    }
    Bar& bar = files_[file.path];
    if (bar == nullptr) {
      const char* note = file.state == hub::FileState::kElsewhere ? " (by another process)" : "";
      bar = make_bar("  " + file.path + note, file.total);
    }
    saker_rs_progress_set(bar.get(), file.done);
  }
  saker_rs_progress_set_total(all_.get(), total);
  saker_rs_progress_set(all_.get(), done);
}

void PullBars::FreeBar::operator()(SakerRsProgress* bar) const {
  saker_rs_progress_free(bar);
}

void PullBars::FreeGroup::operator()(SakerRsProgressGroup* group) const {
  saker_rs_progress_group_free(group);
}

}  // namespace saker::cli
