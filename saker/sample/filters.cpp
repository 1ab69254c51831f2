// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/filters.h"

#include "saker/base/portable_math.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>

namespace saker::sample {

namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();

bool better(const Candidate& a, const Candidate& b) {
  return a.log_prob > b.log_prob || (a.log_prob == b.log_prob && a.id < b.id);
}

// Rounded to float32, as the field computes it: then .5 + .25 reaches a top_p of .75.
double probability(float log_prob) {
  return static_cast<float>(portable_exp(log_prob));
}

// The log-probability below which min_p removes.
float min_p_threshold(float max, double min_p) {
  return max + static_cast<float>(portable_log(std::max(min_p, 1e-300)));
}

bool top_p_on(const SamplingOptions& options) {
  return options.top_p > 0.0 && options.top_p < 1.0;
}

std::size_t count_from(std::span<const float> row, float cut) {
  std::uint32_t count = 0;
  for (const float x : row) {
    count += x >= cut ? 1U : 0U;
  }
  return count;
}

std::vector<Candidate> gather(std::span<const float> row, float cut) {
  std::vector<Candidate> found;
  found.reserve(count_from(row, cut));
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] >= cut) {
      found.push_back({row[i], static_cast<std::int32_t>(i)});
    }
  }
  return found;
}

double mass(std::span<const Candidate> tokens) {
  double sum = 0.0;
  for (const Candidate& token : tokens) {
    sum += probability(token.log_prob);
  }
  return sum;
}

// Tokens at or above ever lower cuts, until `enough` of them were found. All cuts keep whole groups
// of equal values.
template <typename Enough>
std::vector<Candidate> gather_until(std::span<const float> row, float max, Enough enough) {
  for (const float margin : {1.0F, 2.0F, 4.0F, 8.0F, 16.0F}) {
    std::vector<Candidate> found = gather(row, max - margin);
    if (enough(found)) {
      return found;
    }
  }
  return gather(row, kLowest);
}

// Selection by mass: the lowest value t with mass(x > t) < target, in expected linear time.
// Reorders `tokens`.
float nucleus_threshold(std::span<Candidate> tokens, double target) {
  double above = 0.0;
  float threshold = kLowest;
  while (!tokens.empty()) {
    const float pivot = tokens[tokens.size() / 2].log_prob;
    const auto middle =
        std::partition(tokens.begin(), tokens.end(), [pivot](const Candidate& token) {
          return token.log_prob > pivot;
        });
    const auto split = static_cast<std::size_t>(middle - tokens.begin());
    const double with_upper = above + mass(tokens.first(split));
    if (with_upper >= target) {
      tokens = tokens.first(split);  // The pivot is out, and everything below it.
      continue;
    }
    threshold = pivot;
    const auto rest = std::partition(middle, tokens.end(), [pivot](const Candidate& token) {
      return token.log_prob == pivot;
    });
    above = with_upper + mass(std::span<Candidate>(middle, rest));
    tokens = std::span<Candidate>(rest, tokens.end());
    if (above >= target) {
      break;
    }
  }
  return threshold;
}

std::vector<Candidate> first_candidates(
    const SamplingOptions& options, std::span<const float> row, float max
) {
  if (top_p_on(options)) {
    return gather_until(row, max, [&](const std::vector<Candidate>& found) {
      return mass(found) >= options.top_p &&
             static_cast<int>(found.size()) >= options.min_tokens_to_keep;
    });
  }
  if (options.min_p > 0.0 && options.min_tokens_to_keep == 1) {
    // One unit lower than the filter itself will cut.
    return gather(row, min_p_threshold(max, options.min_p) - 1.0F);
  }
  if (options.top_k > 0 && options.min_p == 0.0 && options.xtc_probability == 0.0) {
    return gather_until(row, max, [&](const std::vector<Candidate>& found) {
      return found.size() >= static_cast<std::size_t>(options.top_k);
    });
  }
  return gather(row, kLowest);
}

void keep_top_p(std::vector<Candidate>& tokens, double p) {
  std::vector<Candidate> scratch = tokens;
  const float threshold = nucleus_threshold(scratch, p);
  std::erase_if(tokens, [threshold](const Candidate& token) { return token.log_prob < threshold; });
}

void keep_best(std::vector<Candidate>& tokens, std::size_t count) {
  if (count < tokens.size()) {
    std::nth_element(
        tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count), tokens.end(), better
    );
    tokens.resize(count);
  }
}

void keep_min_p(std::vector<Candidate>& tokens, float max, const SamplingOptions& options) {
  const float threshold = min_p_threshold(max, options.min_p);
  const auto above = static_cast<std::size_t>(std::count_if(
      tokens.begin(),
      tokens.end(),
      [&](const Candidate& token) { return token.log_prob >= threshold; }
  ));
  keep_best(tokens, std::max(above, static_cast<std::size_t>(options.min_tokens_to_keep)));
}

void remove_xtc(
    std::vector<Candidate>& tokens, double threshold, std::span<const std::int32_t> exempt
) {
  const double total = mass(tokens);
  double cut = std::numeric_limits<double>::infinity();
  for (const Candidate& token : tokens) {
    const double p = probability(token.log_prob) / total;
    if (p > threshold && p < cut) {
      cut = p;
    }
  }
  std::erase_if(tokens, [&](const Candidate& token) {
    return probability(token.log_prob) / total > cut &&
           !std::binary_search(exempt.begin(), exempt.end(), token.id);
  });
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
  std::vector<Candidate> tokens = first_candidates(options, log_probs, max);
  if (top_p_on(options)) {
    keep_top_p(tokens, options.top_p);
  }
  if (options.min_p > 0.0) {
    keep_min_p(tokens, max, options);
  }
  if (xtc) {
    remove_xtc(tokens, options.xtc_threshold, xtc_exempt);
  }
  if (options.top_k > 0) {
    keep_best(tokens, static_cast<std::size_t>(options.top_k));
  }
  std::sort(tokens.begin(), tokens.end(), [](const Candidate& a, const Candidate& b) {
    return a.id < b.id;
  });
  return tokens;
}

}  // namespace saker::sample
