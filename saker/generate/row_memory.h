// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory of cached rows and states under a budget: those of sequences, of the prefix cache, and
// of whoever else counts on the same account. Rows that nobody runs on give way first. Draft
// models' rows are not counted. Threading: the thread that owns MLX.

#include "saker/cache/prefix_cache.h"
#include "saker/cache/sequence_cache.h"
#include "saker/generate/running_sequence.h"
#include "saker/kernels/cpu/runtime/memory_account.h"
#include "saker/models/model.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace saker::generate {

struct CacheMemory {
  std::size_t budget = 0;                                     // Bytes; 0: any number.
  std::shared_ptr<kernels::MemoryAccount> account = nullptr;  // Null: an own one.
  // Gives up rows that nobody runs on, such as of a session; false if there are none. May be empty.
  std::function<bool()> give_way = {};
};

class RowMemory {
 public:
  // `model` and `prefixes` (may be null) outlive this.
  RowMemory(
      const models::Model& model, CacheMemory memory, int prefill_step, cache::PrefixCache* prefixes
  );

  RowMemory(const RowMemory&) = delete;
  RowMemory& operator=(const RowMemory&) = delete;
  ~RowMemory();

  bool is_bounded() const { return memory_.budget > 0; }

  const std::shared_ptr<kernels::MemoryAccount>& account() const { return memory_.account; }

  // Bytes that are free.
  std::size_t room() const;

  // Some rows that nobody runs on leave; false if there are none.
  bool give_way();

  // Throws kInvalidArgument for a sequence that does not fit alone.
  void check(const SequenceRequest& request, const models::ModelInfo& info);

  // Bytes that a sequence takes until its pending tokens have run and its answer has a page more.
  // `known`: its first rows that are in memory.
  std::size_t still_needs(const RunningSequence& sequence, std::int64_t known);

 private:
  // Bytes of a sequence's cache with so many rows.
  std::size_t bytes_with(const SequenceRequest& request, std::int64_t rows);

  const models::Model& model_;
  CacheMemory memory_;
  int prefill_step_;
  cache::PrefixCache* prefixes_;
  // Empty caches by max_kv_size and kv_bits, to ask for their bytes.
  std::map<std::pair<int, int>, cache::SequenceCache> empty_caches_;
};

}  // namespace saker::generate
