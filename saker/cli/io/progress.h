// SPDX-License-Identifier: Apache-2.0
#pragma once

// A progress bar on stderr; shows nothing if stderr is no terminal. One thread at a time.

#include <cstdint>
#include <memory>
#include <string_view>

struct SakerRsProgress;

namespace saker::cli {

class Progress {
 public:
  enum class Unit : std::uint8_t { kPieces, kBytes, kWeights };  // Values as in Rust.

  Progress(std::uint64_t total, std::string_view label, Unit unit = Unit::kPieces);

  void set(std::uint64_t position);

 private:
  struct Free {
    void operator()(SakerRsProgress* progress) const;
  };

  std::unique_ptr<SakerRsProgress, Free> bar_;
};

}  // namespace saker::cli
