// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/packing/weight_bytes.h"

#include "saker/kernels/cpu/runtime/aligned_bytes.h"

#include <mutex>

namespace saker::kernels {
namespace {

constexpr std::size_t kLine = 64;
// Untouched pages take no memory, so a slab wastes at most part of one huge page.
constexpr std::size_t kSlab = std::size_t{64} << 20;
// Smaller weights occur in tests only; larger ones fill huge pages by themselves.
constexpr std::size_t kLeastShared = std::size_t{256} << 10;
constexpr std::size_t kMaxShared = kSlab / 4;

struct Slab {
  AlignedBytes bytes = AlignedBytes(kSlab);
  std::size_t used = 0;
};

template <typename Owner>
std::shared_ptr<std::byte> bytes_of(const std::shared_ptr<Owner>& owner, std::byte* data) {
  return {owner, data};
}

}  // namespace

std::shared_ptr<std::byte> allocate_weight_bytes(std::size_t size) {
  if (size < kLeastShared || size > kMaxShared) {
    const auto own = std::make_shared<AlignedBytes>(size);
    return bytes_of(own, own->data());
  }
  static std::mutex mutex;
  static std::weak_ptr<Slab> last;
  const std::scoped_lock lock(mutex);
  std::shared_ptr<Slab> slab = last.lock();
  if (slab == nullptr || kSlab - slab->used < size) {
    slab = std::make_shared<Slab>();
    last = slab;
  }
  std::byte* data = slab->bytes.data() + slab->used;
  slab->used += (size + kLine - 1) / kLine * kLine;
  return bytes_of(slab, data);
}

}  // namespace saker::kernels
