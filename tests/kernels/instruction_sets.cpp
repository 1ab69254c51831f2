// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/instruction_sets.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/layout/block_format.h"

namespace saker::kernels {

#if defined(__x86_64__)
namespace avx512_emulated {
extern const KernelTable kernel_table;
}

namespace avx512_bf16_emulated {
extern const KernelTable kernel_table;
extern const KernelTable winograd_kernel_table;
}  // namespace avx512_bf16_emulated

namespace amx_emulated {
extern const KernelTable kernel_table;
}
#endif

namespace {

bool can_run(const std::string& name) {
  try {
    const std::string before(kernel_table_name());
    select_kernel_table(name);
    select_kernel_table(before);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::string> find_instruction_sets() {
  std::vector<std::string> names;
  for (const char* name :
       {"portable",
        "avx2",
        "avx512",
        "avx512_vnni",
        "avx512_bf16",
        "avx512_bf16_zen4",
        "amx",
        "neon",
        "neon_bf16"}) {
    if (can_run(name)) {
      names.emplace_back(name);
    }
  }
#if defined(__x86_64__)
  if (can_run("avx2")) {
    add_kernel_table("avx512_emulated", avx512_emulated::kernel_table);
    add_kernel_table("avx512_bf16_emulated", avx512_bf16_emulated::kernel_table);
    add_kernel_table("avx512_bf16_zen4_emulated", avx512_bf16_emulated::winograd_kernel_table);
    add_kernel_table("amx_emulated", amx_emulated::kernel_table);
    names.insert(
        names.end(),
        {"avx512_emulated", "avx512_bf16_emulated", "avx512_bf16_zen4_emulated", "amx_emulated"}
    );
  }
#endif
  return names;
}

}  // namespace

std::vector<std::string> instruction_sets() {
  static const std::vector<std::string> names = find_instruction_sets();
  return names;
}

Rounding linear_rounding(std::string_view set, const WeightFormat& format) {
  if (format.kind == WeightKind::kFloat32 || format.kind == WeightKind::kFloat16) {
    return Rounding::kNone;
  }
  const bool on_tiles = set.starts_with("amx");
  const bool has_vectors = set.starts_with("avx");
  const bool is_affine = format.kind == WeightKind::kAffine || is_block(format.kind);
  const bool is_e2m1 = format.kind == WeightKind::kMxfp4 || format.kind == WeightKind::kNvfp4;
  if ((is_affine && (has_vectors || on_tiles)) || (is_e2m1 && has_vectors)) {
    return Rounding::kInt16;
  }
  const bool has_bf16 = set.find("bf16") != std::string_view::npos || on_tiles;
  return has_bf16 ? Rounding::kBf16 : Rounding::kNone;
}

Rounding attend_rounding(std::string_view set, bool bf16, int bits) {
  if (bf16 && bits != 16 && (set.starts_with("avx") || set.starts_with("amx"))) {
    return Rounding::kInt16;
  }
  const bool has_bf16 = set.find("bf16") != std::string_view::npos || set.starts_with("amx");
  return bf16 && has_bf16 ? Rounding::kBf16 : Rounding::kNone;
}

namespace {

double limit_of(Rounding rounding) {
  switch (rounding) {
    case Rounding::kBf16:
      return 5 * 0x1p-9;
    case Rounding::kInt16:
      return 5e-4;
    default:
      return 0;
  }
}

}  // namespace

double attend_limit(std::string_view set, bool bf16, int bits) {
  const double unquantized = 2e-5 + limit_of(attend_rounding(set, bf16, 16));
  if (bits == 16) {
    return unquantized;
  }
  // The first page of a quantized cache is none of codes.
  return std::max(unquantized, 1e-4 + limit_of(attend_rounding(set, bf16, bits)));
}

}  // namespace saker::kernels
