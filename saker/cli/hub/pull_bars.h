// SPDX-License-Identifier: Apache-2.0
#pragma once

// Progress of a pull on stderr: a bar for all files, and one for each file under way. If stderr is
// no terminal, a line every half minute while bytes arrive. One thread at a time.

#include "saker/hub/pull.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

struct SakerRsProgress;
struct SakerRsProgressGroup;

namespace saker::cli {

class PullBars {
 public:
  explicit PullBars(std::string label);

  void show(std::span<const hub::FileProgress> files);

 private:
  struct FreeBar {
    void operator()(SakerRsProgress* bar) const;
  };

  struct FreeGroup {
    void operator()(SakerRsProgressGroup* group) const;
  };

  using Bar = std::unique_ptr<SakerRsProgress, FreeBar>;

  void show_line(std::uint64_t done, std::uint64_t total);
  Bar make_bar(const std::string& label, std::uint64_t total) const;

  std::string label_;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
  std::uint64_t told_bytes_ = 0;
  std::unique_ptr<SakerRsProgressGroup, FreeGroup> group_;
  Bar all_;
  std::map<std::string, Bar> files_;  // Files under way, by path.
};

}  // namespace saker::cli
