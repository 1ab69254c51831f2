// SPDX-License-Identifier: Apache-2.0
#pragma once

// Progress bars of a pull on stderr: one for all files, and one for each that is on its way. Shows
// nothing when stderr is no terminal. One thread at a time.

#include "saker/hub/pull.h"

#include <map>
#include <memory>
#include <span>
#include <string>

struct SakerRsProgress;
struct SakerRsProgressGroup;

namespace saker::cli {

class PullBars {
 public:
  explicit PullBars(const std::string& label);

  void show(std::span<const hub::FileProgress> files);

 private:
  struct FreeBar {
    void operator()(SakerRsProgress* bar) const;
  };

  struct FreeGroup {
    void operator()(SakerRsProgressGroup* group) const;
  };

  using Bar = std::unique_ptr<SakerRsProgress, FreeBar>;

  Bar make_bar(const std::string& label, std::uint64_t total) const;

  std::unique_ptr<SakerRsProgressGroup, FreeGroup> group_;
  Bar all_;
  std::map<std::string, Bar> files_;  // By path: those on their way.
};

}  // namespace saker::cli
