// SPDX-License-Identifier: Apache-2.0
#pragma once

// Expects a typed error of one line.

#include "saker/base/error.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::testing {

// The error that `body` throws must have this code, be one line, and hold all these words.
inline void expect_error(
    ErrorCode code, const std::vector<std::string_view>& words, const std::function<void()>& body
) {
  try {
    body();
    ADD_FAILURE() << "nothing was thrown, expected " << error_code_name(code);
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error_code_name(error.code()), error_code_name(code)) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_FALSE(text.empty());
    for (const std::string_view word : words) {
      EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' is not in: " << text;
    }
  }
}

}  // namespace saker::testing
