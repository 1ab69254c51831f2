// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/hub/pull_bars.h"

#include "saker/base/characters/printable.h"
#include "saker/cli/hub/size_text.h"
#include "saker/cli/io/output.h"

#include "saker_rs_terminal.h"
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace saker::cli {
namespace {

constexpr std::chrono::seconds kBetweenLines{30};

bool is_on_its_way(hub::FileState state) {
  return state == hub::FileState::kElsewhere || state == hub::FileState::kFetching ||
         state == hub::FileState::kVerifying;
}

}  // namespace

PullBars::PullBars(std::string label)
    : label_(std::move(label)), group_(saker_rs_progress_group_new()), all_(make_bar(label_, 0)) {}

void PullBars::show_line(std::uint64_t done, std::uint64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (now - told_ < kBetweenLines || done == told_bytes_) {
    return;
  }
  told_ = now;
  told_bytes_ = done;
  print_error(fmt::format("{}: {} of {}\n", label_, size_text(done), size_text(total)));
}

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
  if (::isatty(STDERR_FILENO) != 1) {
    show_line(done, total);
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
