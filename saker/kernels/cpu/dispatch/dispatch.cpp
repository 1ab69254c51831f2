// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/dispatch/dispatch.h"

#include "saker/base/instruction_set.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <string>

namespace saker::kernels {

namespace portable {
extern const KernelTable kernel_table;
}

#if defined(SAKER_HAS_AVX2)
namespace avx2 {
extern const KernelTable kernel_table;
}
#endif

#if defined(SAKER_HAS_AVX512)
namespace avx512 {
extern const KernelTable kernel_table;
}
#endif

#if defined(SAKER_HAS_AVX512_VNNI)
namespace avx512_vnni {
extern const KernelTable kernel_table;
}
#endif

#if defined(SAKER_HAS_AVX512_BF16)
namespace avx512_bf16 {
extern const KernelTable kernel_table;
extern const KernelTable winograd_kernel_table;
}  // namespace avx512_bf16
#endif

#if defined(SAKER_HAS_AMX)
namespace amx {
extern const KernelTable kernel_table;
}
#endif

#if defined(SAKER_HAS_NEON)
namespace neon {
extern const KernelTable kernel_table;
}
#endif

#if defined(SAKER_HAS_NEON_BF16)
namespace neon_bf16 {
extern const KernelTable kernel_table;
}
#endif

namespace {

const BodiesBySet<KernelTable>& tables() {
  static const BodiesBySet<KernelTable> by_set{
      {InstructionSet::kPortable, &portable::kernel_table},
#if defined(SAKER_HAS_NEON)
      {InstructionSet::kNeon, &neon::kernel_table},
#endif
#if defined(SAKER_HAS_NEON_BF16)
      {InstructionSet::kNeonBf16, &neon_bf16::kernel_table},
#endif
#if defined(SAKER_HAS_AVX2)
      {InstructionSet::kAvx2, &avx2::kernel_table},
#endif
#if defined(SAKER_HAS_AVX512)
      {InstructionSet::kAvx512, &avx512::kernel_table},
#endif
#if defined(SAKER_HAS_AVX512_VNNI)
      {InstructionSet::kAvx512Vnni, &avx512_vnni::kernel_table},
#endif
#if defined(SAKER_HAS_AVX512_BF16)
      {InstructionSet::kAvx512Bf16, &avx512_bf16::kernel_table},
      {InstructionSet::kAvx512Bf16Zen4, &avx512_bf16::winograd_kernel_table},
#endif
#if defined(SAKER_HAS_AMX)
      {InstructionSet::kAmx, &amx::kernel_table},
#endif
  };
  return by_set;
}

// Tables of tests, which emulate a set that the processor may lack.
struct AddedTable {
  std::string name;
  const KernelTable* table;
};

class AddedTables {
 public:
  void add(std::string_view name, const KernelTable& table) {
    const std::scoped_lock lock(mutex_);
    tables_.push_back({std::string(name), &table});
  }

  // False without a table of this name.
  bool select(std::string_view name) {
    const std::scoped_lock lock(mutex_);
    for (const AddedTable& added : tables_) {
      if (added.name == name) {
        selected_.store(&added, std::memory_order_release);
        return true;
      }
    }
    return false;
  }

  void unselect() { selected_.store(nullptr, std::memory_order_release); }

  const AddedTable* selected() const { return selected_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  std::deque<AddedTable> tables_;  // A deque never moves its elements.
  std::atomic<const AddedTable*> selected_ = nullptr;
};

AddedTables& added_tables() {
  static AddedTables added;
  return added;
}

}  // namespace

const KernelTable& kernel_table() {
  const AddedTable* const added = added_tables().selected();
  return added != nullptr ? *added->table : tables().in_use();
}

std::string_view kernel_table_name() {
  const AddedTable* const added = added_tables().selected();
  return added != nullptr ? std::string_view(added->name) : name_of(saker::instruction_set());
}

void select_kernel_table(std::string_view name) {
  if (!added_tables().select(name)) {
    saker::select_instruction_set(name);
    added_tables().unselect();
  }
}

void add_kernel_table(std::string_view name, const KernelTable& table) {
  added_tables().add(name, table);
}

}  // namespace saker::kernels
