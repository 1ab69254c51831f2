// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/measures/importance.h"

#include "saker/base/files/atomic_file.h"
#include "saker/base/json/json.h"
#include "saker/load/export/imatrix_file.h"
#include "saker/load/export/importance_names.h"
#include "saker/load/sources/open_texts.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace saker::engine {
namespace {

load::gguf::ImportanceEntry entry_of(const score::InputSquares& squares) {
  constexpr double kMost = std::numeric_limits<float>::max();
  load::gguf::ImportanceEntry entry;
  entry.sums.reserve(squares.sums.size());
  for (const double sum : squares.sums) {
    entry.sums.push_back(static_cast<float>(std::min(sum, kMost)));
  }
  for (const std::int64_t count : squares.counts) {
    entry.counts.push_back(static_cast<float>(count));
  }
  return entry;
}

void count_experts(const score::InputSquares& squares, ImportanceReport& report) {
  if (squares.counts.size() > 1) {
    report.experts += static_cast<std::int64_t>(squares.counts.size());
    report.unseen_experts += std::ranges::count(squares.counts, 0);
  }
}

// A text begins with the token that the tokenizer puts there, and so does each chunk.
std::optional<std::int32_t> first_token(const Engine& engine, const ImportanceRequest& request) {
  const auto begin = engine.special_token("bos_token");
  const bool is_added = begin && !request.tokens.empty() && request.tokens.front() == *begin;
  return is_added ? begin : std::nullopt;
}

}  // namespace

ImportanceReport write_importance(
    Engine& engine, ImportanceRequest request, const ImportanceTarget& target
) {
  const auto start = std::chrono::steady_clock::now();
  {
    const AtomicFile can_be_written(target.path);
  }
  const Json config = load::open_texts(engine.facts().path).read_json("config.json");
  const load::gguf::ImportanceNames names(config);
  if (!request.first_token) {
    request.first_token = first_token(engine, request);
  }
  ImportanceReport report;
  request.progress = [&,
                      told = std::move(request.progress)](std::int64_t done, std::int64_t total) {
    report.chunks = done;
    if (told) {
      told(done, total);
    }
  };
  const auto modules = engine.input_squares(request);
  report.tokens = report.chunks * request.chunk;
  report.entries = static_cast<std::int64_t>(modules.size());
  load::gguf::ImportanceFile file{
      .entries = {},
      .datasets = {target.dataset},
      .chunk_count = static_cast<std::uint32_t>(report.chunks),
      .chunk_size = static_cast<std::uint32_t>(request.chunk),
  };
  for (const auto& [module, squares] : modules) {
    count_experts(*squares, report);
    auto placed = names.place(module, entry_of(*squares));
    file.entries.emplace(std::move(placed.name), std::move(placed.entry));
  }
  load::gguf::write_imatrix(target.path, file);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  report.seconds = seconds.count();
  return report;
}

}  // namespace saker::engine
