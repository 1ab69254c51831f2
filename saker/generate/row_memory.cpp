// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/row_memory.h"

#include "saker/base/error.h"
#include "saker/kernels/layout/kv_block.h"

#include <algorithm>
#include <limits>

namespace saker::generate {
namespace {

constexpr std::size_t kMostEmptyCaches = 64;

bool has_limit(const SequenceRequest& request) {
  return request.max_tokens < std::numeric_limits<int>::max();
}

// Rows that a sequence needs: those before its answer's last token; without a limit, those of its
// prompt.
std::int64_t needed_rows(const SequenceRequest& request, const models::ModelInfo& info) {
  const auto prompt = request.unknown_rows + static_cast<std::int64_t>(request.prompt.size());
  const std::int64_t rows = prompt + (has_limit(request) ? request.max_tokens - 1 : 0);
  return info.context_length > 0 ? std::min(rows, info.context_length) : rows;
}

}  // namespace

RowMemory::RowMemory(
    const models::Model& model, CacheMemory memory, int prefill_step, cache::PrefixCache* prefixes
)
    : model_(model), memory_(std::move(memory)), prefill_step_(prefill_step), prefixes_(prefixes) {
  if (memory_.account == nullptr) {
    memory_.account = std::make_shared<kernels::MemoryAccount>();
  }
  if (prefixes_ != nullptr && is_bounded()) {
    prefixes_->ask_before_loading([this](std::size_t bytes) { return bytes <= room(); });
  }
}

RowMemory::~RowMemory() {
  if (prefixes_ != nullptr && is_bounded()) {
    prefixes_->ask_before_loading({});
  }
}

std::size_t RowMemory::room() const {
  const std::size_t held = memory_.account->bytes();
  return is_bounded() ? memory_.budget - std::min(held, memory_.budget)
                      : std::numeric_limits<std::size_t>::max();
}

bool RowMemory::give_way() {
  return (prefixes_ != nullptr && prefixes_->give_way()) ||
         (memory_.give_way && memory_.give_way());
}

std::size_t RowMemory::bytes_with(const SequenceRequest& request, std::int64_t rows) {
  if (empty_caches_.size() >= kMostEmptyCaches) {
    empty_caches_.clear();
  }
  const std::pair key{request.max_kv_size, request.kv_bits};
  auto found = empty_caches_.find(key);
  if (found == empty_caches_.end()) {
    const kernels::AccountBinding uncounted(nullptr);
    found =
        empty_caches_
            .emplace(
                key,
                model_.make_cache({.max_kv_size = request.max_kv_size, .kv_bits = request.kv_bits})
            )
            .first;
  }
  return found->second.bytes_with(rows, prefill_step_);
}

void RowMemory::check(const SequenceRequest& request, const models::ModelInfo& info) {
  if (!is_bounded()) {
    return;
  }
  const std::int64_t rows = needed_rows(request, info);
  const std::size_t bytes = bytes_with(request, rows);
  require(
      bytes <= memory_.budget,
      ErrorCode::kInvalidArgument,
      "cache_memory: {} tokens of prompt and answer take {} bytes, expected at most the {} bytes "
      "for "
      "cached rows",
      rows,
      bytes,
      memory_.budget
  );
}

std::size_t RowMemory::still_needs(const RunningSequence& sequence, std::int64_t known) {
  if (!is_bounded()) {
    return 0;
  }
  std::int64_t rows = sequence.position() + kernels::kPageRows;
  if (has_limit(sequence.request)) {
    rows = std::min(rows, needed_rows(sequence.request, model_.info()));
  }
  const std::size_t all = bytes_with(sequence.request, rows);
  return all - std::min(bytes_with(sequence.request, known), all);
}

}  // namespace saker::generate
