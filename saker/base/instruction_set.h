// SPDX-License-Identifier: Apache-2.0
#pragma once

// The instruction set in use. Sources of bodies are compiled once per set (cmake/isa.cmake); which
// set runs is chosen at run time: the best that the processor has, or the one that the environment
// variable SAKER_CPU names.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace saker {

// Each set includes those of its processor that come before it.
enum class InstructionSet : std::uint8_t {
  kPortable,
  kNeon,
  kNeonBf16,  // The dot products of ARMv8.2, the bf16 and int8 ones of ARMv8.6.
  kAvx2,      // With FMA and F16C.
  kAvx512,    // F, BW, VL and DQ.
  kAvx512Vnni,
  kAvx512Bf16,      // With VNNI and VBMI.
  kAvx512Bf16Zen4,  // The same instructions, bodies for processors with more adders.
  kAmx,             // Tiles of bf16 and int8.
};

// "portable", "neon", "neon_bf16", "avx2", "avx512", "avx512_vnni", "avx512_bf16",
// "avx512_bf16_zen4" or "amx".
std::string_view name_of(InstructionSet set);

// The sets that this program has and this processor runs, the least first. On Linux, asks the
// system for the tile registers if the processor has them.
const std::vector<InstructionSet>& runnable_sets();

// The set in use. Throws kUnsupported if SAKER_CPU names none that can run. Safe from any thread.
InstructionSet instruction_set();

// For tests: switches between passes. Throws kUnsupported for other names than those of
// runnable_sets(), and changes nothing then.
void select_instruction_set(std::string_view name);

// Bodies of one kind, for each set that has its own.
template <typename Bodies>
class BodiesBySet {
 public:
  struct Entry {
    InstructionSet set;
    const Bodies* bodies;
  };

  // REQUIRES: the least set first, which is portable.
  BodiesBySet(std::initializer_list<Entry> entries) : entries_(entries) {}

  // Those of the set in use, or of the best set that it includes. Throws as instruction_set().
  const Bodies& in_use() const {
    const InstructionSet used = instruction_set();
    const Bodies* best = entries_.front().bodies;
    for (const Entry& entry : entries_) {
      best = entry.set <= used ? entry.bodies : best;
    }
    return *best;
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace saker
