// SPDX-License-Identifier: Apache-2.0
// An attention of its own with Saker's cache classes: caches FILE runs a prompt through three
// layers, saves their caches in FILE, and shows that reloaded caches continue with the same bits.
#include "saker/caches/prompt_cache.h"
#include "saker/caches/quantized.h"

#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

namespace mx = mlx::core;
namespace caches = saker::caches;

constexpr int kHeads = 4;
constexpr int kKvHeads = 2;  // Each serves two query heads.
constexpr int kHeadDim = 64;
constexpr int kHidden = kHeads * kHeadDim;
constexpr int kPromptTokens = 20;
constexpr int kNewTokens = 8;

mx::array random(int seed, const mx::Shape& shape) {
  return mx::random::normal(shape, mx::float32, 0.0F, 0.05F, mx::random::key(seed));
}

// [1, n, H * D] as [1, H, n, D].
mx::array split_heads(const mx::array& rows, int heads) {
  return mx::swapaxes(mx::reshape(rows, {1, rows.shape(1), heads, kHeadDim}), 1, 2);
}

// One layer: projections with weights of its own, and attention over the rows of a cache.
class Attention {
 public:
  explicit Attention(int seed)
      : queries_(random(seed, {kHidden, kHidden})),
        keys_(random(seed + 1, {kHidden, kKvHeads * kHeadDim})),
        values_(random(seed + 2, {kHidden, kKvHeads * kHeadDim})) {}

  // x [1, n, hidden] to the same shape; appends n rows to the cache.
  mx::array operator()(const mx::array& x, caches::Cache& cache) const {
    const int n = x.shape(1);
    const int first = static_cast<int>(cache.offset());
    const auto rotated = [&](const mx::array& rows) {
      return mx::fast::rope(rows, kHeadDim, false, 10000.0F, 1.0F, first);
    };
    const auto q = rotated(split_heads(mx::matmul(x, queries_), kHeads));
    const auto k = rotated(split_heads(mx::matmul(x, keys_), kKvHeads));
    const auto v = split_heads(mx::matmul(x, values_), kKvHeads);
    const float scale = 1.0F / std::sqrt(static_cast<float>(kHeadDim));

    caches::QuantizedCache* const quantized = cache.as_quantized();
    // The mask comes before the update: it is for the rows that the update will return.
    const auto mask = cache.make_mask(
        n, std::nullopt, quantized != nullptr ? caches::MaskForm::kArray : caches::MaskForm::kAny
    );
    const auto heads = quantized != nullptr ? attend_quantized(q, *quantized, k, v, mask, scale)
                                            : attend(q, cache.update(k, v), mask, scale);
    return mx::add(x, mx::reshape(mx::swapaxes(heads, 1, 2), {1, n, kHidden}));
  }

 private:
  static mx::array attend(
      const mx::array& q, const caches::KeyValues& rows, const caches::Mask& mask, float scale
  ) {
    const bool causal = mask.kind == caches::Mask::Kind::kCausal;
    return mx::fast::scaled_dot_product_attention(
        q, rows.keys, rows.values, scale, causal ? "causal" : "", mask.array
    );
  }

  // Multiplies with the codes themselves. A head axis of size 1 lets a KV head serve its queries.
  static mx::array attend_quantized(
      const mx::array& q,
      caches::QuantizedCache& cache,
      const mx::array& k,
      const mx::array& v,
      const caches::Mask& mask,
      float scale
  ) {
    const auto rows = cache.update_quantized(k, v);
    const auto product = [&](const mx::array& x, const caches::QuantizedRows& y, bool transpose) {
      return mx::quantized_matmul(
          x,
          mx::expand_dims(y.weight, 2),
          mx::expand_dims(y.scales, 2),
          mx::expand_dims(*y.biases, 2),
          transpose,
          cache.group_size(),
          cache.bits(),
          cache.mode()
      );
    };
    const auto grouped = mx::reshape(q, {1, kKvHeads, kHeads / kKvHeads, q.shape(2), kHeadDim});
    auto scores = product(mx::multiply(grouped, mx::array(scale)), rows.keys, true);
    if (mask.array) {
      scores = mx::where(*mask.array, scores, mx::array(-INFINITY));
    }
    const auto heads = product(mx::softmax(scores, -1, true), rows.values, false);
    return mx::reshape(heads, q.shape());
  }

  mx::array queries_;
  mx::array keys_;
  mx::array values_;
};

// All rows, a window of 16 rows after the first 4, and all rows at 8 bits.
caches::PromptCache make_caches() {
  return {
      caches::make_prompt_cache(1).front(),
      caches::make_prompt_cache(1, 16).front(),
      std::make_shared<caches::QuantizedKVCache>(caches::Quantization{.group_size = 64, .bits = 8}),
  };
}

mx::array run(
    const std::vector<Attention>& layers, const caches::PromptCache& caches, mx::array x
) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    x = layers[i](x, *caches[i]);
  }
  return x;
}

// Continues token by token, each token's output as the next one's input: [1, kNewTokens, hidden].
mx::array continued(
    const std::vector<Attention>& layers, const caches::PromptCache& caches, mx::array x
) {
  std::vector<mx::array> outputs;
  for (int i = 0; i < kNewTokens; ++i) {
    x = run(layers, caches, x);
    outputs.push_back(x);
  }
  return mx::concatenate(outputs, 1);
}

int show(const std::string& file) {
  const std::vector<Attention> layers = {Attention(1), Attention(11), Attention(21)};
  const caches::PromptCache caches = make_caches();
  const auto prompt = random(99, {1, kPromptTokens, kHidden});
  const auto last = mx::slice(
      run(layers, caches, prompt), {0, kPromptTokens - 1, 0}, {1, kPromptTokens, kHidden}
  );
  caches::save_prompt_cache(file, caches, {{"example", "caches"}});

  const auto whole = continued(layers, caches, last);
  const auto loaded = caches::load_prompt_cache(file);
  const auto again = continued(layers, loaded.caches, last);
  for (const auto& cache : loaded.caches) {
    std::printf(
        "%-16s %2d tokens, %zu bytes\n",
        std::string(cache->kind()).c_str(),
        static_cast<int>(cache->offset()),
        cache->nbytes()
    );
  }
  const bool same = mx::array_equal(whole, again).item<bool>();
  std::printf(
      "%d tokens after the reloaded prompt: %s bits\n", kNewTokens, same ? "the same" : "other"
  );
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: caches FILE\n");
    return 2;
  }
  try {
    return show(argv[1]);
  } catch (const std::exception& error) {  // saker::Error is one.
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
