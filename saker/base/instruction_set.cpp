// SPDX-License-Identifier: Apache-2.0
#include "saker/base/instruction_set.h"

#include "saker/base/error.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>

#include <cstddef>
#elif defined(SAKER_HAS_AMX)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace saker {
namespace {

constexpr std::array<std::string_view, 9> kNames{
    "portable",
    "neon",
    "neon_bf16",
    "avx2",
    "avx512",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_bf16_zen4",
    "amx"
};

// Which of these run depends on the sets that are compiled in.
#if defined(__x86_64__)

[[maybe_unused]] bool has_avx2() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         __builtin_cpu_supports("f16c") != 0;
}

[[maybe_unused]] bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0;
}

[[maybe_unused]] bool has_avx512_vnni() {
  return has_avx512() && __builtin_cpu_supports("avx512vnni") != 0;
}

[[maybe_unused]] bool has_avx512_bf16() {
  return has_avx512_vnni() && __builtin_cpu_supports("avx512bf16") != 0 &&
         __builtin_cpu_supports("avx512vbmi") != 0;
}

#elif defined(__aarch64__) && defined(__linux__)

[[maybe_unused]] bool has_neon_bf16() {
  constexpr unsigned long kMatrices = HWCAP2_I8MM | HWCAP2_BF16;
  return (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 &&
         (::getauxval(AT_HWCAP2) & kMatrices) == kMatrices;
}

#elif defined(__aarch64__) && defined(__APPLE__)

[[maybe_unused]] bool has_neon_bf16() {
  const auto has = [](const char* name) {
    int value = 0;
    std::size_t size = sizeof(value);
    return ::sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
  };
  return has("hw.optional.arm.FEAT_DotProd") && has("hw.optional.arm.FEAT_BF16") &&
         has("hw.optional.arm.FEAT_I8MM");
}

#endif

#if defined(SAKER_HAS_AMX)
bool has_amx() {
  return has_avx512_bf16() && __builtin_cpu_supports("amx-tile") != 0 &&
         __builtin_cpu_supports("amx-bf16") != 0 && __builtin_cpu_supports("amx-int8") != 0;
}

// Requests the tile registers from the kernel, which Linux grants to a process on request only
// (https://docs.kernel.org/arch/x86/xstate.html).
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

std::vector<InstructionSet> find_runnable_sets() {
  std::vector<InstructionSet> sets = {InstructionSet::kPortable};
  [[maybe_unused]] const auto add = [&](InstructionSet set, bool runs) {
    if (runs) {
      sets.push_back(set);
    }
  };
#if defined(SAKER_HAS_NEON)
  add(InstructionSet::kNeon, true);
#endif
#if defined(SAKER_HAS_NEON_BF16)
  add(InstructionSet::kNeonBf16, has_neon_bf16());
#endif
#if defined(SAKER_HAS_AVX2)
  add(InstructionSet::kAvx2, has_avx2());
#endif
#if defined(SAKER_HAS_AVX512)
  add(InstructionSet::kAvx512, has_avx512());
#endif
#if defined(SAKER_HAS_AVX512_VNNI)
  add(InstructionSet::kAvx512Vnni, has_avx512_vnni());
#endif
#if defined(SAKER_HAS_AVX512_BF16)
  add(InstructionSet::kAvx512Bf16, has_avx512_bf16());
  // Since Zen 4, four ports add vectors and two multiply; elsewhere the same two ports do both.
  add(InstructionSet::kAvx512Bf16Zen4, has_avx512_bf16() && __builtin_cpu_is("amd") != 0);
#endif
#if defined(SAKER_HAS_AMX)
  add(InstructionSet::kAmx, has_amx() && request_tiles());
#endif
  return sets;
}

InstructionSet find_set(std::string_view name, std::string_view source) {
  std::vector<std::string_view> names;
  for (const InstructionSet set : runnable_sets()) {
    names.push_back(name_of(set));
    if (names.back() == name) {
      return set;
    }
  }
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format(
          "[cpu] {}: got '{}', this processor can run {}", source, name, fmt::join(names, ", ")
      )
  );
}

InstructionSet first_choice() {
  const char* const forced = std::getenv("SAKER_CPU");
  return forced == nullptr || *forced == '\0' ? runnable_sets().back()
                                              : find_set(forced, "SAKER_CPU");
}

std::atomic<InstructionSet>& choice() {
  static std::atomic<InstructionSet> set = first_choice();
  return set;
}

}  // namespace

std::string_view name_of(InstructionSet set) {
  return kNames.at(static_cast<std::size_t>(set));
}

const std::vector<InstructionSet>& runnable_sets() {
  static const std::vector<InstructionSet> sets = find_runnable_sets();
  return sets;
}

InstructionSet instruction_set() {
  return choice().load(std::memory_order_relaxed);
}

void select_instruction_set(std::string_view name) {
  choice().store(find_set(name, "instruction set"), std::memory_order_relaxed);
}

}  // namespace saker
