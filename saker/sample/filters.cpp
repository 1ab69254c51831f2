// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/filters.h"

#include "saker/base/portable_math.h"
#include "saker/base/row_loops.h"
#include "saker/sample/nucleus.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>

namespace saker::sample {

namespace {

// min_p removes log-probabilities below this.
float min_p_threshold(float max, double min_p) {
  return max + static_cast<float>(portable_log(std::max(min_p, 1e-300)));
}

bool top_p_on(const SamplingOptions& options) {
  return options.top_p > 0.0 && options.top_p < 1.0;
}

template <typename Wanted>
std::vector<Candidate> gather(std::span<const float> row, Wanted wanted) {
  std::vector<Candidate> found;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] >= kLowest && wanted(row[i])) {
      found.push_back({row[i], static_cast<std::int32_t>(i)});
    }
  }
  return found;
}

// A value with at least `count` tokens at or above it, and not many more; the lowest float if there
// are fewer tokens.
float rough_top_k_threshold(std::span<const float> row, float max, std::size_t count) {
  std::array<std::size_t, kBands> band_count{};
  for (const float x : row) {
    ++band_count[band_of(x, max)];
  }
  std::size_t above = 0;
  for (std::size_t band = 0; band + 1 < kBands; ++band) {
    above += band_count[band];
    if (above >= count) {
      // One band lower, because rounding may put values of this band just below its border.
      return max - static_cast<float>(band + 2) / kBandsPerUnit;
    }
  }
  return kLowest;
}

// Keeps the `count` best; ties: the lower ids. Keeps the order.
void keep_best(std::vector<Candidate>& tokens, std::size_t count) {
  if (count >= tokens.size()) {
    return;
  }
  std::vector<float> values;
  values.reserve(tokens.size());
  for (const Candidate& token : tokens) {
    values.push_back(token.log_prob);
  }
  const auto last = values.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::nth_element(values.begin(), last, values.end(), std::greater<>());
  const float worst = *last;
  auto ties = static_cast<std::ptrdiff_t>(count) -
              std::count_if(values.begin(), last, [&](float x) { return x > worst; });
  std::erase_if(tokens, [&](const Candidate& token) {
    return token.log_prob < worst || (token.log_prob == worst && ties-- <= 0);
  });
}

void keep_min_p(std::vector<Candidate>& tokens, float threshold, int min_tokens_to_keep) {
  const auto above = static_cast<std::size_t>(std::count_if(
      tokens.begin(),
      tokens.end(),
      [&](const Candidate& token) { return token.log_prob >= threshold; }
  ));
  keep_best(tokens, std::max(above, static_cast<std::size_t>(min_tokens_to_keep)));
}

void remove_xtc(
    std::vector<Candidate>& tokens, double threshold, std::span<const std::int32_t> exempt
) {
  std::vector<float> log_probs(tokens.size());
  std::ranges::transform(tokens, log_probs.begin(), &Candidate::log_prob);
  std::vector<float> probabilities(tokens.size());
  row_loops().exponentials(log_probs.data(), log_probs.size(), probabilities.data());
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  // Few are this probable; the check spares the others a division.
  const double least = threshold * total * (1.0 - 1e-9);
  double cut = std::numeric_limits<double>::infinity();
  for (const double p : probabilities) {
    if (p > least && p / total > threshold) {
      cut = std::min(cut, p / total);
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const double p = probabilities[i];
    const bool removed = p > least && p / total > cut &&
                         !std::binary_search(exempt.begin(), exempt.end(), tokens[i].id);
    if (!removed) {
      tokens[kept++] = tokens[i];
    }
  }
  tokens.resize(kept);
}

}  // namespace

bool filters_needed(const SamplingOptions& options) {
  return top_p_on(options) || options.min_p > 0.0 || options.xtc_probability > 0.0 ||
         options.top_k > 0;
}

std::vector<Candidate> filter(
    const SamplingOptions& options,
    std::span<const float> log_probs,
    float max,
    bool xtc,
    std::span<const std::int32_t> xtc_exempt
) {
  float cut =
      top_p_on(options) ? nucleus_threshold(log_probs, log_probs, max, options.top_p) : kLowest;
  const float min_p_cut = options.min_p > 0.0 ? min_p_threshold(max, options.min_p) : kLowest;
  const bool keeps_some = options.min_p > 0.0 && options.min_tokens_to_keep > 1;
  if (!keeps_some) {
    cut = std::max(cut, min_p_cut);
    if (options.top_k > 0 && !xtc) {
      // Only saves work: the k best are chosen below.
      const auto count = static_cast<std::size_t>(options.top_k);
      cut = std::max(cut, rough_top_k_threshold(log_probs, max, count));
    }
  }
  std::vector<Candidate> tokens = gather(log_probs, [cut](float x) { return x >= cut; });
  if (keeps_some) {
    keep_min_p(tokens, min_p_cut, options.min_tokens_to_keep);
  }
  if (xtc) {
    remove_xtc(tokens, options.xtc_threshold, xtc_exempt);
  }
  if (options.top_k > 0) {
    keep_best(tokens, static_cast<std::size_t>(options.top_k));
  }
  return tokens;
}

}  // namespace saker::sample
