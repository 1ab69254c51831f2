// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_model.h"

#include "saker/kernels/cpu/runtime/memory_account.h"

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

namespace saker::testing {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

std::uint64_t extend(std::uint64_t hash, std::int32_t token) {
  // 48 bits, which two floats hold exactly.
  return mix(hash * 31 + static_cast<std::uint64_t>(token) + 1) >> 16U;
}

class FakeCache : public cache::LayerCache {
 public:
  explicit FakeCache(int trim_window) : trim_window_(trim_window) {}

  std::string_view kind() const override { return "FakeCache"; }

  cache::KeyValues update(const mx::array& /*keys*/, const mx::array& /*values*/) override {
    throw std::logic_error("not used");
  }

  kernels::AttendSpan append(int first_row, int row_count) override {
    const auto first = static_cast<std::int64_t>(tokens.size());
    resize(tokens.size() + static_cast<std::size_t>(row_count));
    kernels::AttendSpan span;
    span.first_row = first_row;
    span.row_count = row_count;
    span.first_position = first;
    return span;
  }

  std::int64_t offset() const override { return static_cast<std::int64_t>(tokens.size()); }

  std::optional<int> max_size() const override { return std::nullopt; }

  std::optional<cache::KeyValues> view() const override { return std::nullopt; }

  bool can_trim(std::int64_t /*count*/) const override {
    return trim_window_ == 0 || offset() <= trim_window_;
  }

  std::int64_t trim(std::int64_t count) override {
    count = std::min(count, offset());
    resize(tokens.size() - static_cast<std::size_t>(count));
    return count;
  }

  void clear() override { resize(0); }

  cache::Mask make_mask(int /*n*/, int /*window*/) const override { return {}; }

  std::size_t nbytes() const override { return tokens.size() * sizeof(std::int32_t); }

  std::size_t growth(std::int64_t row_count) const override { return bytes_with(row_count, 0); }

  std::size_t bytes_with(std::int64_t row_count, int /*step*/) const override {
    return static_cast<std::size_t>(row_count) * sizeof(std::int32_t);
  }

  std::unique_ptr<cache::LayerCache> copy() const override {
    auto copy = std::make_unique<FakeCache>(trim_window_);
    copy->resize(tokens.size());
    copy->tokens = tokens;
    return copy;
  }

  void begin() override { begun_ = tokens.size(); }

  void commit(std::int64_t count) override {
    const auto written = static_cast<std::int64_t>(tokens.size() - begun_);
    resize(begun_ + static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, written)));
  }

  void roll_back() override { resize(begun_); }

  std::vector<std::int32_t> tokens;

 private:
  void resize(std::size_t count) {
    tokens.resize(count, -1);
    held_.resize(nbytes());
  }

  int trim_window_;
  std::size_t begun_ = 0;
  kernels::HeldBytes held_;
};

}  // namespace

FakeModel::FakeModel(const FakeModelOptions& options) : options_(options) {
  info_.model_type = "fake";
  info_.layer_count = 1;
  info_.hidden_size = 2;
  info_.vocab_size = options.vocab_size;
  info_.context_length = options.context_length;
}

mx::array FakeModel::forward(const mx::array& ids, nn::ForwardContext& context) const {
  mx::array tokens = ids;
  mx::eval(tokens);
  passes.push_back({static_cast<int>(context.spans().size()), static_cast<int>(tokens.size())});
  const std::int32_t* token = tokens.data<std::int32_t>();
  context.append(0);
  const bool poisoned =
      std::find(token, token + tokens.size(), options_.poison) != token + tokens.size();
  if (poisoned) {
    throw std::bad_alloc();
  }
  std::vector<float> hidden;
  for (const nn::Span& span : context.spans()) {
    auto& cache = dynamic_cast<FakeCache&>(span.cache->layer(0));
    const std::size_t first = cache.tokens.size() - static_cast<std::size_t>(span.row_count);
    std::copy(token, token + span.row_count, cache.tokens.begin() + static_cast<long>(first));
    token += span.row_count;
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < cache.tokens.size(); ++i) {
      hash = extend(hash, cache.tokens[i]);
      if (i >= first) {
        hidden.push_back(static_cast<float>(hash >> 24U));
        hidden.push_back(static_cast<float>(hash & 0xffffffU));
      }
    }
  }
  return mx::array(hidden.data(), {static_cast<int>(tokens.size()), 2}, mx::float32);
}

mx::array FakeModel::unembed(const mx::array& hidden, const nn::RowContext& /*adapters*/) const {
  mx::array rows = mx::contiguous(hidden);
  mx::eval(rows);
  const int count = rows.shape(0);
  most_logit_rows = std::max(most_logit_rows, count);
  const float* data = rows.data<float>();
  std::vector<float> result;
  for (int row = 0; row < count; ++row, data += 2) {
    const auto high = static_cast<std::uint64_t>(data[0]);
    const std::vector<float> one = logits_of(high << 24U | static_cast<std::uint64_t>(data[1]));
    result.insert(result.end(), one.begin(), one.end());
  }
  return mx::array(result.data(), {count, options_.vocab_size}, mx::float32);
}

cache::SequenceCache FakeModel::make_cache(const models::CacheOptions& /*options*/) const {
  std::vector<std::unique_ptr<cache::LayerCache>> layers;
  layers.push_back(std::make_unique<FakeCache>(options_.trim_window));
  return cache::SequenceCache(std::move(layers));
}

std::size_t FakeModel::cache_bytes(std::int64_t depth, int /*kv_bits*/) const {
  return static_cast<std::size_t>(depth) * sizeof(std::int32_t);
}

std::vector<float> FakeModel::logits(const std::vector<std::int32_t>& tokens) const {
  std::uint64_t hash = 0;
  for (const std::int32_t token : tokens) {
    hash = extend(hash, token);
  }
  return logits_of(hash);
}

std::vector<float> FakeModel::logits_of(std::uint64_t hash) const {
  std::vector<float> result;
  for (int id = 0; id < options_.vocab_size; ++id) {
    const std::uint64_t bits = mix(hash + static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15U);
    result.push_back(static_cast<float>(bits >> 40U) * 0x1p-24F * options_.spread);
  }
  return result;
}

}  // namespace saker::testing
