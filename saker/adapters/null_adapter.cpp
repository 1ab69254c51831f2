// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/null_adapter.h"

#include "saker/adapters/source_parts.h"
#include "saker/base/error.h"
#include "saker/base/portable_math.h"

#include <cmath>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace saker::adapters {
namespace {

// Normal numbers by Marsaglia's polar method (https://doi.org/10.1137/1006063) on portable
// operations: those of the standard library differ between implementations.
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : bits_(seed) {}

  double next() {
    if (spare_) {
      return *std::exchange(spare_, std::nullopt);
    }
    while (true) {
      const double u = uniform();
      const double v = uniform();
      const double square = u * u + v * v;
      if (square > 0.0 && square < 1.0) {
        const double factor = std::sqrt(-2.0 * portable_log(square) / square);
        spare_ = v * factor;
        return u * factor;
      }
    }
  }

 private:
  // A number in [-1, 1).
  double uniform() { return static_cast<double>(bits_() >> 11U) * 0x1p-52 - 1.0; }

  std::mt19937_64 bits_;
  std::optional<double> spare_;
};

Tensor noise(const Tensor& like, double deviation, Normal& normal) {
  std::vector<float> values(static_cast<std::size_t>(like.element_count()));
  for (float& value : values) {
    value = static_cast<float>(deviation * normal.next());
  }
  return float_tensor(like.shape, std::move(values));
}

}  // namespace

AdapterSource null_adapter(const AdapterSource& source, const NullOptions& options) {
  require(
      std::isfinite(options.rank_scale) && options.rank_scale > 0.0,
      ErrorCode::kInvalidArgument,
      "rank_scale: got {}, expected a positive number",
      options.rank_scale
  );
  require(
      std::isfinite(options.init_scale) && options.init_scale >= 0.0,
      ErrorCode::kInvalidArgument,
      "init_scale: got {}, expected a number of at least 0",
      options.init_scale
  );
  const double deviation = options.init_scale * std::sqrt(options.rank_scale);
  Normal normal(options.seed);
  AdapterSource result;
  result.format = source.format;
  result.tied_head_follows = source.tied_head_follows;
  result.config = source.config;
  result.dir = source.dir;
  result.base_type = source.base_type;
  for (const auto& [name, module] : source.modules) {
    if (!module.low_rank) {
      continue;
    }
    const LowRank& original = *module.low_rank;
    ModuleSource replaced;
    replaced.name = module.name;
    replaced.low_rank = LowRank{
        .down = noise(original.down, deviation, normal),
        .up = noise(original.up, deviation, normal),
        .embedding = original.embedding,
        .scale = original.scale,
        .bias = std::nullopt,
        .magnitude = std::nullopt,
    };
    result.modules.emplace(name, std::move(replaced));
  }
  require(
      !result.modules.empty(),
      ErrorCode::kUnsupported,
      "a null adapter needs low-rank changes to put noise in, the adapter has none"
  );
  // In full precision: rounded numbers would give different adapters one identity.
  result.identity = fmt::format(
      "null:{}:{:a}:{:a}:{}", options.seed, options.init_scale, options.rank_scale, source.identity
  );
  return result;
}

}  // namespace saker::adapters
