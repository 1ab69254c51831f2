// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/experts/expert_rows.h"

#include "saker/kernels/layout/row_tiles.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace saker::kernels {
void sort_pairs(std::span<const int> ids, int experts, int* pairs, int* sorted) {
  const auto expert_of = [&](int id) {
    return static_cast<std::size_t>(id >= 0 && id < experts ? id : experts);
  };
  std::vector<int> places(static_cast<std::size_t>(experts) + 2, 0);
  for (const int id : ids) {
    ++places[expert_of(id) + 1];
  }
  std::partial_sum(places.begin(), places.end(), places.begin());
  for (std::size_t pair = 0; pair < ids.size(); ++pair) {
    const std::size_t expert = expert_of(ids[pair]);
    const int place = places[expert]++;
    pairs[place] = static_cast<int>(pair);
    sorted[place] = static_cast<int>(expert);
  }
}

std::vector<ExpertRun> runs_of(std::span<const int> sorted) {
  std::vector<ExpertRun> runs;
  for (int place = 0; const int expert : sorted) {
    if (runs.empty() || runs.back().expert != expert) {
      runs.push_back({.expert = expert, .first = place});
    }
    ++runs.back().count;
    ++place;
  }
  return runs;
}

std::vector<int> places_of_pairs(std::span<const int> pairs) {
  std::vector<int> places(pairs.size());
  for (std::size_t place = 0; place < pairs.size(); ++place) {
    places[static_cast<std::size_t>(pairs[place])] = static_cast<int>(place);
  }
  return places;
}

void combine_row(
    const float* y, std::span<const int> places, const float* weights, int width, float* out
) {
  // Sums of some columns stay in registers while products of all ranks are added.
  constexpr int kColumns = 32;
  for (int first = 0; first < width; first += kColumns) {
    const int count = std::min(kColumns, width - first);
    float sums[kColumns] = {};
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
      const float* from = y + static_cast<std::ptrdiff_t>(places[rank]) * width + first;
      const float factor = weights[rank];
      const auto add = [&](int columns) {
        for (int i = 0; i < columns; ++i) {
          sums[i] = rank == 0 ? factor * from[i] : sums[i] + factor * from[i];
        }
      };
      count == kColumns ? add(kColumns) : add(count);
    }
    std::copy_n(sums, count, out + first);
  }
}

void combine_rows(
    const float* y,
    std::span<const int> places,
    const float* weights,
    int rows,
    int width,
    float* out
) {
  const std::size_t ranks = rows == 0 ? 0 : places.size() / static_cast<std::size_t>(rows);
  each_row(rows, std::int64_t{width} * static_cast<std::int64_t>(ranks + 1), [&](int row) {
    const std::size_t first = static_cast<std::size_t>(row) * ranks;
    float* to = out + static_cast<std::ptrdiff_t>(row) * width;
    combine_row(y, places.subspan(first, ranks), weights + first, width, to);
  });
}

}  // namespace saker::kernels
