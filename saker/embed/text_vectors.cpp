// SPDX-License-Identifier: Apache-2.0
#include "saker/embed/text_vectors.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>

namespace saker::embed {
namespace {

const models::EmbeddingHead& head_of(const models::Model& model) {
  const models::EmbeddingHead* head = model.embedding_head();
  require(head != nullptr, ErrorCode::kUnsupported, "the model has no vectors of texts");
  require(head->config().problem.empty(), ErrorCode::kUnsupported, "{}", head->config().problem);
  return *head;
}

// The rows of an array [n, columns] float32, cut to `kept` elements.
std::vector<std::vector<float>> rows_of(mx::array array, int kept) {
  array = mx::contiguous(array);
  mx::eval(array);
  const auto columns = static_cast<std::size_t>(array.shape(1));
  const float* from = array.data<float>();
  std::vector<std::vector<float>> rows(static_cast<std::size_t>(array.shape(0)));
  for (std::vector<float>& row : rows) {
    row.assign(from, from + kept);
    from += columns;
  }
  return rows;
}

// Sums in order, in double: one result for all machines.
void make_unit_length(std::vector<float>& row) {
  double squares = 0.0;
  for (const float x : row) {
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  const double length = std::sqrt(squares);
  if (length > 0.0) {
    std::ranges::transform(row, row.begin(), [&](float x) {
      return static_cast<float>(static_cast<double>(x) / length);
    });
  }
}

// Rows that go through the layers together: their memory does not grow with the number of texts.
constexpr std::size_t kBlock = 1024;

// Appends what `run` makes of pooled rows, a block at a time, cut to `kept` elements.
template <typename Run>
std::vector<std::vector<float>> in_blocks(
    const std::vector<float>& pooled, int hidden, int kept, const Run& run
) {
  const auto width = static_cast<std::size_t>(hidden);
  std::vector<std::vector<float>> all;
  all.reserve(pooled.size() / width);
  for (std::size_t first = 0; first * width < pooled.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, pooled.size() / width - first);
    const mx::array rows(pooled.data() + first * width, {static_cast<int>(count), hidden});
    std::ranges::move(rows_of(run(rows), kept), std::back_inserter(all));
  }
  return all;
}

}  // namespace

void check_dimensions(int dimensions, int size) {
  require(
      dimensions >= 0 && dimensions <= size,
      ErrorCode::kInvalidArgument,
      "dimensions: got {}, expected 1 to the vectors' {}",
      dimensions,
      size
  );
}

std::vector<std::vector<float>> text_vectors(
    const models::Model& model, std::span<const TokenSpan> sequences, const VectorOptions& options
) {
  const models::EmbeddingHead& head = head_of(model);
  check_dimensions(options.dimensions, head.size());
  const std::vector<float> pooled = pool_rows(model, sequences, options.pool);
  const int kept = options.dimensions > 0 ? options.dimensions : head.size();
  auto vectors = in_blocks(pooled, model.info().hidden_size, kept, [&](const mx::array& rows) {
    return head.vectors(rows);
  });
  if (options.normalize) {
    std::ranges::for_each(vectors, make_unit_length);
  }
  return vectors;
}

std::vector<std::vector<float>> class_scores(
    const models::Model& model, std::span<const TokenSpan> sequences, const PoolOptions& options
) {
  const models::EmbeddingHead& head = head_of(model);
  require(
      head.class_count() > 0,
      ErrorCode::kUnsupported,
      "the model has no classifier, such as the tensor score.weight"
  );
  PoolOptions own = options;
  own.pooling = head.class_pooling();
  const std::vector<float> pooled = pool_rows(model, sequences, own);
  const int hidden = model.info().hidden_size;
  return in_blocks(pooled, hidden, head.class_count(), [&](const mx::array& rows) {
    return head.scores(rows);
  });
}

}  // namespace saker::embed
