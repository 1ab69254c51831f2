// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_keys.h"

#include "saker/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

bool is_whole(double number) {
  constexpr double kLargest = 9007199254740992.0;  // All integers up to it are doubles.
  return std::abs(number) <= kLargest && std::trunc(number) == number;
}

}  // namespace

Keys::Keys(const Header& header)
    : header_(header), prefix_(header.string("general.architecture").value_or("")) {}

std::string Keys::full(std::string_view key) const {
  return fmt::format("{}.{}", prefix_, key);
}

std::optional<std::int64_t> Keys::integer(std::string_view key, bool skips_zeros) const {
  if (!header_.is_array(full(key))) {
    return header_.integer(full(key));
  }
  std::vector<double> all = header_.numbers(full(key));
  if (skips_zeros) {
    std::erase(all, 0.0);
  }
  const bool is_one = !all.empty() && is_whole(all.front()) &&
                      std::ranges::all_of(all, [&](double size) { return size == all.front(); });
  expect(is_one, key, "an array of several numbers", "one integer for all layers");
  return static_cast<std::int64_t>(all.front());
}

std::int64_t Keys::required(std::string_view key) const {
  const auto value = integer(key);
  require(
      value.has_value(), ErrorCode::kCorruptData, "{}: '{}' is missing", header_.what(), full(key)
  );
  return *value;
}

std::vector<std::int64_t> Keys::by_layer(std::string_view key, std::int64_t layers) const {
  if (!header_.is_array(full(key))) {
    const auto one = integer(key);
    return one ? std::vector(static_cast<std::size_t>(layers), *one) : std::vector<std::int64_t>();
  }
  const std::vector<double> all = header_.numbers(full(key));
  require(
      std::cmp_equal(all.size(), layers) && std::ranges::all_of(all, is_whole),
      ErrorCode::kCorruptData,
      "{}: '{}' has {} numbers, expected {} integers, one for each layer",
      header_.what(),
      full(key),
      all.size(),
      layers
  );
  std::vector<std::int64_t> result;
  result.reserve(all.size());
  for (const double number : all) {
    result.push_back(static_cast<std::int64_t>(number));
  }
  return result;
}

std::int64_t Keys::required_size(std::string_view key) const {
  return checked_size(key, required(key));
}

std::int64_t Keys::checked_size(std::string_view key, std::int64_t size) const {
  constexpr std::int64_t kMax = 1 << 16;
  expect(
      size > 0 && size <= kMax,
      key,
      fmt::format("{}", size),
      fmt::format("a number from 1 to {}", kMax)
  );
  return size;
}

void Keys::expect(bool ok, std::string_view key, std::string_view got, std::string_view expected)
    const {
  require(
      ok,
      ErrorCode::kUnsupported,
      "{}: '{}' is {}, expected {}",
      header_.what(),
      full(key),
      got,
      expected
  );
}

bool has_tensor(const Header& header, std::string_view name) {
  return std::ranges::find(header.tensors, name, &TensorEntry::name) != header.tensors.end();
}

std::int64_t head_count(const Keys& keys) {
  return keys.required_size("attention.head_count");
}

std::int64_t kv_head_count(const Keys& keys) {
  constexpr std::string_view kKey = "attention.head_count_kv";
  return keys.checked_size(kKey, keys.integer(kKey, true).value_or(head_count(keys)));
}

std::int64_t layer_count(const Keys& keys) {
  constexpr std::string_view kDrafts = "nextn_predict_layers";
  const std::int64_t all = keys.required("block_count");
  const std::int64_t drafts = keys.integer(kDrafts).value_or(0);
  keys.expect(
      drafts >= 0 && (drafts == 0 || drafts < all),
      kDrafts,
      fmt::format("{}", drafts),
      fmt::format("fewer than the {} layers", all)
  );
  return all - drafts;
}

}  // namespace saker::load::gguf
