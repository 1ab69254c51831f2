// SPDX-License-Identifier: Apache-2.0
#include "saker/load/inspect/tensor_check.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {
namespace {

using models::RosterModule;

constexpr int kWordBits = 32;

// Tensors by their name in the roster; several if experts are separate.
using Named = std::map<std::string, std::vector<const SafetensorsEntry*>, std::less<>>;

Named by_roster_name(const Headers& headers) {
  Named named;
  for (const auto& [name, entry] : headers) {
    named[models::roster_name(name)].push_back(&entry);
  }
  return named;
}

[[noreturn]] void refuse(const SafetensorsEntry& entry, std::string_view expected) {
  throw Error(
      ErrorCode::kCorruptData,
      fmt::format(
          "[{}] shape [{}], expected {} as the configuration says",
          entry.name,
          fmt::join(entry.shape, ", "),
          expected
      )
  );
}

// The sizes of one weight, without the stack's.
struct Sizes {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

class ModuleCheck {
 public:
  ModuleCheck(const Named& named, const std::string& name, const RosterModule& module)
      : named_(named), name_(name), module_(module) {}

  void run() const {
    const std::string weight =
        module_.kind == RosterModule::Kind::kTensor ? name_ : name_ + ".weight";
    auto found = named_.find(weight);
    if (found == named_.end() && module_.experts > 0) {
      found = named_.find(name_);  // Fused experts have no leaf.
    }
    if (found == named_.end()) {
      const bool is_missing = module_.is_required && !has_fused();
      require(!is_missing, ErrorCode::kCorruptData, "[{}] tensor is missing", weight);
      return;
    }
    check_count(weight, found->second);
    for (const SafetensorsEntry* entry : found->second) {
      if (module_.kind == RosterModule::Kind::kLinear) {
        check_linear(*entry);
      } else if (is_norm() && module_.rows > 0) {
        check_norm(*entry);
      }
    }
  }

 private:
  bool is_norm() const {
    return module_.kind == RosterModule::Kind::kNorm ||
           module_.kind == RosterModule::Kind::kLayerNorm;
  }

  // True if another module holds this one.
  bool has_fused() const {
    if (module_.fused.empty()) {
      return false;
    }
    const std::string fused =
        fmt::format("{}{}", name_.substr(0, name_.rfind('.') + 1), module_.fused);
    return named_.contains(fused) || named_.contains(fused + ".weight");
  }

  // A stack is one tensor for all experts, or one per expert.
  void check_count(const std::string& weight, const std::vector<const SafetensorsEntry*>& entries)
      const {
    if (module_.experts == 0 || entries.front()->shape.size() == 3) {
      return;
    }
    require(
        entries.size() == static_cast<std::size_t>(module_.experts),
        ErrorCode::kCorruptData,
        "[{}] {} experts, expected {} as the configuration says",
        weight,
        entries.size(),
        module_.experts
    );
  }

  void check_norm(const SafetensorsEntry& entry) const {
    if (entry.shape.size() != 1 || entry.shape.front() != module_.rows) {
      refuse(entry, fmt::format("[{}]", module_.rows));
    }
  }

  Sizes sizes_of(const SafetensorsEntry& entry) const {
    const std::size_t dims = entry.shape.size();
    const bool is_stack = module_.experts > 0 && dims == 3;
    if ((dims != 2 && !is_stack) || (is_stack && entry.shape.front() != module_.experts)) {
      refuse(entry, expected());
    }
    const bool is_fused = is_stack && roster_leaf_is_missing(entry);
    return is_fused && module_.fused_transposed
               ? Sizes{entry.shape[dims - 1], entry.shape[dims - 2]}
               : Sizes{entry.shape[dims - 2], entry.shape[dims - 1]};
  }

  static bool roster_leaf_is_missing(const SafetensorsEntry& entry) {
    return !entry.name.ends_with(".weight") && !entry.name.ends_with(".scales");
  }

  std::string expected() const {
    return module_.rows > 0 ? fmt::format("[{}, {}]", module_.rows, module_.columns)
                            : fmt::format("rows of {}", module_.columns);
  }

  void check_linear(const SafetensorsEntry& entry) const {
    const Sizes sizes = sizes_of(entry);
    const bool has_rows = module_.rows == 0 || sizes.rows == module_.rows;
    const bool is_packed = entry.dtype == DType::kUInt32;
    if (!has_rows || (!is_packed && sizes.columns != module_.columns)) {
      refuse(entry, expected());
    }
    if (is_packed) {
      check_packed(entry, sizes);
    }
  }

  void require_part(bool is_there, std::string_view part) const {
    require(
        is_there,
        ErrorCode::kCorruptData,
        "[{}.{}] tensor is missing, and the weight is quantized",
        name_,
        part
    );
  }

  // Checks codes in words, with a scale per group.
  void check_packed(const SafetensorsEntry& entry, const Sizes& sizes) const {
    constexpr std::array<std::int64_t, 6> kWidths{2, 3, 4, 5, 6, 8};
    const std::int64_t bits = sizes.columns * kWordBits;
    const bool is_width = bits % module_.columns == 0 &&
                          std::ranges::find(kWidths, bits / module_.columns) != kWidths.end();
    if (!is_width) {
      refuse(entry, fmt::format("codes of {} weights a row", module_.columns));
    }
    const auto scales = named_.find(name_ + ".scales");
    require_part(scales != named_.end(), "scales");
    // Affine codes have biases; formats with scales in bytes have none.
    const bool is_affine = scales->second.front()->dtype != DType::kUInt8;
    require_part(!is_affine || named_.contains(name_ + ".biases"), "biases");
    for (const SafetensorsEntry* scale : scales->second) {
      const Sizes groups = sizes_of(*scale);
      if (groups.rows != sizes.rows || groups.columns == 0 ||
          module_.columns % groups.columns != 0) {
        refuse(
            *scale, fmt::format("a scale for each group of [{}, {}]", sizes.rows, module_.columns)
        );
      }
    }
  }

  const Named& named_;
  const std::string& name_;
  const RosterModule& module_;
};

}  // namespace

void check_tensors(const models::TensorRoster& roster, const Headers& headers) {
  const Named named = by_roster_name(headers);
  for (const auto& [name, module] : roster.modules()) {
    ModuleCheck(named, name, module).run();
  }
}

}  // namespace saker::load
