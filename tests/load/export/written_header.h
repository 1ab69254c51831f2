// SPDX-License-Identifier: Apache-2.0
#pragma once

// Metadata as a GGUF file's header, for tests that read back what is written.

#include "saker/load/export/gguf_metadata.h"
#include "saker/load/gguf/gguf_file.h"

#include "tests/support/gguf_builder.h"
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace saker::load::gguf {

inline testing::GgufBuilder builder_of(const Metadata& pairs) {
  testing::GgufBuilder builder;
  for (const KeyValue& pair : pairs) {
    const std::string& key = pair.key;
    std::visit(
        [&](const auto& held) {
          using Type = std::decay_t<decltype(held)>;
          if constexpr (std::is_same_v<Type, bool>) {
            builder.boolean(key, held);
          } else if constexpr (std::is_same_v<Type, std::uint32_t>) {
            builder.integer(key, held);
          } else if constexpr (std::is_same_v<Type, float>) {
            builder.number(key, held);
          } else if constexpr (std::is_same_v<Type, std::string>) {
            builder.string(key, held);
          } else if constexpr (std::is_same_v<Type, std::vector<std::string>>) {
            builder.strings(key, held);
          } else if constexpr (std::is_same_v<Type, std::vector<std::int32_t>>) {
            builder.integers(key, held);
          } else if constexpr (std::is_same_v<Type, std::vector<float>>) {
            builder.floats(key, held);
          } else {
            ADD_FAILURE() << key << " has a type that no test needs";
          }
        },
        pair.value
    );
  }
  return builder;
}

inline Header header_of(const testing::GgufBuilder& builder) {
  const std::string file = builder.file();
  return parse_gguf(std::as_bytes(std::span(file)), "written");
}

// The value of a key; the type's default and a failure without it.
template <typename Type>
Type value_of(const Metadata& pairs, std::string_view key) {
  for (const KeyValue& pair : pairs) {
    if (pair.key == key) {
      const Type* held = std::get_if<Type>(&pair.value);
      EXPECT_NE(held, nullptr) << key << " has another type";
      return held != nullptr ? *held : Type();
    }
  }
  ADD_FAILURE() << key << " is missing";
  return Type();
}

inline bool has_key(const Metadata& pairs, std::string_view key) {
  for (const KeyValue& pair : pairs) {
    if (pair.key == key) {
      return true;
    }
  }
  return false;
}

}  // namespace saker::load::gguf
