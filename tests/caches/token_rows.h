// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows that hold token ids: keys and values [B, 1, S, 1], each batch row its list of ids.

#include "saker/caches/cache.h"
#include "saker/caches/row_buffer.h"

#include <numeric>
#include <string>
#include <vector>

namespace saker::caches {

using Ids = std::vector<int>;
using Texts = std::vector<std::string>;

inline mx::array token_rows(const std::vector<Ids>& batch) {
  std::vector<float> data;
  for (const Ids& ids : batch) {
    data.insert(data.end(), ids.begin(), ids.end());
  }
  const int batch_rows = static_cast<int>(batch.size());
  return mx::array(
      data.data(), {batch_rows, 1, static_cast<int>(batch.front().size()), 1}, mx::float32
  );
}

inline mx::array token_rows(const Ids& ids) {
  return token_rows(std::vector<Ids>{ids});
}

inline Ids numbers(int first, int count) {
  Ids ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

inline std::vector<float> floats_of(const mx::array& array) {
  auto dense = mx::contiguous(mx::astype(array, mx::float32));
  dense.eval();
  return {dense.data<float>(), dense.data<float>() + dense.size()};
}

// The ids of each batch row: the first element of each row of the first head.
inline std::vector<Ids> batch_ids(const mx::array& rows) {
  std::vector<Ids> batch;
  for (int b = 0; b < rows.shape(0); ++b) {
    const auto part = mx::slice(rows, {b, 0, 0, 0}, {b + 1, 1, rows.shape(2), 1});
    const auto values = floats_of(part);
    batch.emplace_back(values.begin(), values.end());
  }
  return batch;
}

inline Ids ids_of(const mx::array& rows) {
  return batch_ids(rows).front();
}

inline Ids append(Cache& cache, const Ids& ids) {
  const auto rows = token_rows(ids);
  return ids_of(cache.update(rows, mx::negative(rows)).keys);
}

inline std::vector<Ids> append_batch(Cache& cache, const std::vector<Ids>& batch) {
  const auto rows = token_rows(batch);
  return batch_ids(cache.update(rows, mx::negative(rows)).keys);
}

inline std::vector<Ids> state_ids(const Cache& cache) {
  return batch_ids(cache.state().at(0));
}

inline std::vector<mx::array> pair_of(const Ids& ids) {
  return {token_rows(ids), mx::negative(token_rows(ids))};
}

// "1100/1110": the rows of the last two axes, batch rows one after the other.
inline std::string bits(const mx::array& mask) {
  const auto values = floats_of(mask);
  const auto width = static_cast<std::size_t>(mask.shape(-1));
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && i % width == 0) {
      text += '/';
    }
    text += values[i] != 0 ? '1' : '0';
  }
  return text;
}

inline std::string bits(const Mask& mask) {
  switch (mask.kind) {
    case Mask::Kind::kNone:
      return "none";
    case Mask::Kind::kCausal:
      return "causal";
    case Mask::Kind::kArray:
      return bits(*mask.array);
  }
  return "";
}

}  // namespace saker::caches
