// SPDX-License-Identifier: Apache-2.0
#pragma once

// The content of a KvStore, for the attend kernel.

#include "saker/kernels/storage/kv_buffer.h"
#include "saker/kernels/storage/kv_pages.h"
#include "saker/kernels/storage/kv_store.h"

#include <variant>

namespace saker::kernels {

struct KvStore::Storage {
  std::variant<KvPages, KvBuffer> rows;

  KvPages* pages() { return std::get_if<KvPages>(&rows); }

  KvBuffer* buffer() { return std::get_if<KvBuffer>(&rows); }
};

}  // namespace saker::kernels
