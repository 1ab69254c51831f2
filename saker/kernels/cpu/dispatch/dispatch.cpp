// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/dispatch/dispatch.h"

#include "saker/base/error.h"
#include "saker/base/processor.h"

#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>

#if defined(SAKER_HAS_AMX)
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

#if defined(SAKER_HAS_AMX)
// Requests the tile registers from the kernel, which Linux grants to a process on request only
// (https://docs.kernel.org/arch/x86/xstate.html).
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

struct Entry {
  std::string name;
  const KernelTable* table;
};

// The tables that this processor can run, worst first.
std::deque<Entry> runnable_tables() {
  std::deque<Entry> tables = {{"portable", &portable::kernel_table}};
#if defined(SAKER_HAS_AVX2)
  if (runs_avx2()) {
    tables.push_back({"avx2", &avx2::kernel_table});
  }
#endif
#if defined(SAKER_HAS_AVX512)
  if (runs_avx512()) {
    tables.push_back({"avx512", &avx512::kernel_table});
  }
#endif
#if defined(SAKER_HAS_AVX512_VNNI)
  if (runs_avx512() && __builtin_cpu_supports("avx512vnni")) {
    tables.push_back({"avx512_vnni", &avx512_vnni::kernel_table});
  }
#endif
#if defined(SAKER_HAS_AVX512_BF16) || defined(SAKER_HAS_AMX)
  const bool avx512_bf16 = runs_avx512() && __builtin_cpu_supports("avx512bf16") &&
                           __builtin_cpu_supports("avx512vnni") &&
                           __builtin_cpu_supports("avx512vbmi");
#endif
#if defined(SAKER_HAS_AVX512_BF16)
  if (avx512_bf16) {
    tables.push_back({"avx512_bf16", &avx512_bf16::kernel_table});
  }
  // Since Zen 4, four ports add vectors and two multiply; elsewhere the same two ports do both.
  if (avx512_bf16 && __builtin_cpu_is("amd")) {
    tables.push_back({"avx512_bf16_zen4", &avx512_bf16::winograd_kernel_table});
  }
#endif
#if defined(SAKER_HAS_AMX)
  if (avx512_bf16 && __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
      __builtin_cpu_supports("amx-int8") && request_tiles()) {
    tables.push_back({"amx", &amx::kernel_table});
  }
#endif
#if defined(SAKER_HAS_NEON)
  tables.push_back({"neon", &neon::kernel_table});
#endif
#if defined(SAKER_HAS_NEON_BF16)
  if (runs_neon_bf16()) {
    tables.push_back({"neon_bf16", &neon_bf16::kernel_table});
  }
#endif
  return tables;
}

class Registry {
 public:
  Registry() : entries_(runnable_tables()) {
    const char* forced = std::getenv("SAKER_CPU");
    current_ = forced == nullptr || *forced == '\0' ? &entries_.back() : find(forced, "SAKER_CPU");
  }

  const Entry& current() const { return *current_.load(std::memory_order_acquire); }

  void select(std::string_view name) {
    const std::scoped_lock lock(mutex_);
    current_.store(find(name, "instruction set"), std::memory_order_release);
  }

  void add(std::string_view name, const KernelTable& table) {
    const std::scoped_lock lock(mutex_);
    entries_.push_back({std::string(name), &table});
  }

 private:
  const Entry* find(std::string_view name, std::string_view what) const {
    std::string names;
    for (const Entry& entry : entries_) {
      if (entry.name == name) {
        return &entry;
      }
      names += (names.empty() ? "" : ", ") + entry.name;
    }
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("[cpu] {}: got '{}', this processor can run {}", what, name, names)
    );
  }

  std::mutex mutex_;
  std::deque<Entry> entries_;  // A deque never moves its elements.
  std::atomic<const Entry*> current_;
};

Registry& registry() {
  static Registry tables;
  return tables;
}

}  // namespace

const KernelTable& kernel_table() {
  return *registry().current().table;
}

std::string_view kernel_table_name() {
  return registry().current().name;
}

void select_kernel_table(std::string_view name) {
  registry().select(name);
}

void add_kernel_table(std::string_view name, const KernelTable& table) {
  registry().add(name, table);
}

}  // namespace saker::kernels
