// SPDX-License-Identifier: Apache-2.0
#pragma once

// Answers that are timed, and what a row of times is worth.

#include "saker/generate/batch_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace saker::generate {

using Ids = std::vector<std::int32_t>;

// Time that passed, and that all threads together ran.
struct Seconds {
  double wall = 0.0;
  double processor = 0.0;

  static Seconds now() {
    const auto wall = std::chrono::steady_clock::now().time_since_epoch();
    return {
        std::chrono::duration<double>(wall).count(),
        static_cast<double>(std::clock()) / CLOCKS_PER_SEC
    };
  }

  Seconds operator-(const Seconds& other) const {
    return {wall - other.wall, processor - other.processor};
  }

  Seconds operator+(const Seconds& other) const {
    return {wall + other.wall, processor + other.processor};
  }
};

struct Answer {
  Ids context;
  Seconds first;  // Until the first token.
  Seconds rest;   // From then on.
  SpeculationCounts counts;
};

class Keep final : public Listener {
 public:
  explicit Keep(Answer& answer) : answer_(answer), start_(Seconds::now()) {}

  bool on_token(const GeneratedToken& /*token*/) override {
    if (!has_first_) {
      has_first_ = true;
      first_ = Seconds::now();
    }
    return true;
  }

  void on_end(SequenceEnd end) noexcept override {
    if (end.error) {
      std::rethrow_exception(end.error);
    }
    answer_ = {std::move(end.context), first_ - start_, Seconds::now() - first_, end.speculation};
  }

 private:
  Answer& answer_;
  Seconds start_;
  Seconds first_ = {};
  bool has_first_ = false;
};

inline Answer run(BatchGenerator& generator, SequenceRequest request) {
  Answer answer;
  generator.add(std::move(request), std::make_unique<Keep>(answer));
  while (!generator.idle()) {
    generator.step();
  }
  return answer;
}

// Tokens that no drafter guesses.
inline Ids make_prompt(int vocab_size, int tokens) {
  Ids ids;
  std::uint64_t state = 1;
  for (int i = 0; i < tokens; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    ids.push_back(static_cast<std::int32_t>((state >> 33U) % static_cast<unsigned>(vocab_size)));
  }
  return ids;
}

struct Spread {
  std::vector<double> values;

  // "min / median / max"
  std::string text() {
    std::ranges::sort(values);
    return fmt::format(
        "{:.3f} / {:.3f} / {:.3f}", values.front(), values[values.size() / 2], values.back()
    );
  }

  void print(const std::string& name, const char* unit) {
    fmt::print("{:<34} {}  {} (min / median / max)\n", name, text(), unit);
  }
};

}  // namespace saker::generate
