// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/options.h"

#include "saker/base/error.h"

#include <cmath>
#include <string_view>

namespace saker::sample {

namespace {

void check_range(std::string_view name, double value, double low, double high) {
  require(
      value >= low && value <= high,  // False for NaN.
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected a number from {} to {}",
      name,
      value,
      low,
      high
  );
}

void check_not_negative(std::string_view name, int value) {
  require(value >= 0, ErrorCode::kInvalidArgument, "{}: got {}, expected 0 or more", name, value);
}

}  // namespace

void check_options(const SamplingOptions& options, int vocab_size) {
  check_range("temperature", options.temperature, 0.0, 100.0);
  check_range("top_p", options.top_p, 0.0, 1.0);
  check_range("min_p", options.min_p, 0.0, 1.0);
  check_range("min_tokens_to_keep", options.min_tokens_to_keep, 1, vocab_size);
  check_not_negative("top_k", options.top_k);
  check_range("top_n_sigma", options.top_n_sigma, 0.0, 100.0);
  check_range("typical_p", options.typical_p, 0.0, 1.0);
  check_range("xtc_probability", options.xtc_probability, 0.0, 1.0);
  check_range("xtc_threshold", options.xtc_threshold, 0.0, 0.5);
  check_range("dynatemp_range", options.dynatemp_range, 0.0, 100.0);
  check_range("dynatemp_exponent", options.dynatemp_exponent, 0.0, 100.0);
  check_range("repetition_penalty", options.repetition_penalty, 0.0, 100.0);
  check_not_negative("repetition_context_size", options.repetition_context_size);
  check_range("presence_penalty", options.presence_penalty, -100.0, 100.0);
  check_not_negative("presence_context_size", options.presence_context_size);
  check_range("frequency_penalty", options.frequency_penalty, -100.0, 100.0);
  check_not_negative("frequency_context_size", options.frequency_context_size);
  check_range("dry_multiplier", options.dry_multiplier, 0.0, 100.0);
  check_range("dry_base", options.dry_base, 1.0, 100.0);
  check_not_negative("dry_allowed_length", options.dry_allowed_length);
  check_not_negative("dry_context_size", options.dry_context_size);
  check_not_negative("min_tokens", options.min_tokens);
  for (const auto& [id, bias] : options.logit_bias) {
    require(
        id >= 0 && id < vocab_size,
        ErrorCode::kInvalidArgument,
        "logit_bias: token id {} is out of range, expected 0 to {}",
        id,
        vocab_size - 1
    );
    require(
        std::isfinite(static_cast<float>(bias)),
        ErrorCode::kInvalidArgument,
        "logit_bias: got {} for token id {}, expected a finite number",
        bias,
        id
    );
  }
}

}  // namespace saker::sample
