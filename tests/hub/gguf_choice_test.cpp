// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/gguf_choice.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace saker::hub {
namespace {

using testing::expect_error;
using Paths = std::vector<std::string>;

// NOLINTNEXTLINE(readability-identifier-naming)
const Paths kMany{
    "README.md",
    "Model-Q4_K_M.gguf",
    "Model-Q8_0.gguf",
    "Model-UD-Q4_K_M.gguf",
    "Model-UD-Q4_K_XL.gguf",
    "BF16/Model-BF16-00002-of-00002.gguf",
    "BF16/Model-BF16-00001-of-00002.gguf",
    "mmproj-Model-F16.gguf",
    "Model-mmproj-F16.gguf",
    "imatrix.gguf",
};

std::string chosen(const Paths& paths, std::string_view wanted) {
  const auto models = gguf_models(paths);
  return choose_gguf(models, wanted, "org/name").path;
}

TEST(GgufChoice, FindsByTheEndOfTheName) {
  for (const std::string_view wanted : {"Q4_K_M", "q4_k_m", "Q4_K_M.gguf", "Model-Q4_K_M"}) {
    EXPECT_EQ(chosen(kMany, wanted), "Model-Q4_K_M.gguf") << wanted;
  }
  EXPECT_EQ(chosen(kMany, "UD-Q4_K_M"), "Model-UD-Q4_K_M.gguf");
  EXPECT_EQ(chosen(kMany, "Q4_K_XL"), "Model-UD-Q4_K_XL.gguf");
  EXPECT_EQ(chosen(kMany, "bf16"), "BF16/Model-BF16-00001-of-00002.gguf");
  EXPECT_EQ(chosen({"a/model.q8_0.gguf", "a/model.f16.gguf"}, "Q8_0"), "a/model.q8_0.gguf");
  EXPECT_EQ(chosen({"Q8_0.gguf", "F16.gguf"}, "Q8_0"), "Q8_0.gguf");
}

TEST(GgufChoice, FindsByPath) {
  EXPECT_EQ(chosen(kMany, "Model-Q8_0.gguf"), "Model-Q8_0.gguf");
  EXPECT_EQ(
      chosen(kMany, "BF16/Model-BF16-00002-of-00002.gguf"), "BF16/Model-BF16-00001-of-00002.gguf"
  );
  EXPECT_EQ(chosen({"a-Q8_0.gguf", "b-a-Q8_0.gguf"}, "a-Q8_0.gguf"), "a-Q8_0.gguf");
}

TEST(GgufChoice, TakesAKnownQuantizationUnasked) {
  EXPECT_EQ(chosen(kMany, ""), "Model-Q4_K_M.gguf");
  EXPECT_EQ(chosen({"x-IQ2_XS.gguf", "x-Q8_0.gguf"}, ""), "x-Q8_0.gguf");
  EXPECT_EQ(chosen({"anything.gguf"}, ""), "anything.gguf");
  expect_error(ErrorCode::kInvalidArgument, {"org/name", "say which one", ":IQ2_XS", ":IQ3_M"}, [] {
    chosen({"x-IQ2_XS.gguf", "x-IQ3_M.gguf"}, "");
  });
}

TEST(GgufChoice, SaysWhatThereIs) {
  expect_error(
      ErrorCode::kNotFound,
      {"org/name", "no GGUF model is called so", ":Q8_0", ":UD-Q4_K_XL", ":BF16"},
      [] { chosen(kMany, "Q3_K_M"); }
  );
  expect_error(ErrorCode::kInvalidArgument, {"several", "a-Q8_0.gguf", "b-Q8_0.gguf"}, [] {
    chosen({"a-Q8_0.gguf", "b-Q8_0.gguf"}, "Q8_0");
  });
  expect_error(ErrorCode::kNotFound, {"holds no GGUF model"}, [] { chosen({"x.bin"}, "Q8_0"); });
  // Parts of words are no names.
  expect_error(ErrorCode::kNotFound, {"called so"}, [] { chosen({"x-IQ4_0.gguf"}, "Q4_0"); });
}

TEST(GgufChoice, PartsBelongTogether) {
  const auto models = gguf_models(kMany);
  ASSERT_EQ(models.size(), 5U);
  EXPECT_EQ(
      models[0].paths,
      (Paths{"BF16/Model-BF16-00001-of-00002.gguf", "BF16/Model-BF16-00002-of-00002.gguf"})
  );
  EXPECT_TRUE(gguf_models(Paths{"x-00001-of-00002.gguf"}).empty());
  EXPECT_TRUE(gguf_models(Paths{"x-00002-of-00002.gguf"}).empty());
  EXPECT_TRUE(gguf_models(Paths{"x-00001-of-99999.gguf", "x-00003-of-99999.gguf"}).empty());
}

TEST(GgufChoice, LabelsChooseWhatTheyLabel) {
  for (const Paths& paths :
       {kMany,
        Paths{"a-Q8_0.gguf", "b-Q8_0.gguf"},
        Paths{"x/model.gguf", "y/model.gguf"},
        Paths{".gguf", "a-.gguf"},
        Paths{"some.gguf"}}) {
    const auto models = gguf_models(paths);
    for (const GgufModel& model : models) {
      EXPECT_EQ(choose_gguf(models, gguf_label(model, models), "").path, model.path);
    }
  }
  const auto models = gguf_models(kMany);
  EXPECT_EQ(gguf_label(models[4], models), "UD-Q4_K_XL");
}

TEST(GgufChoice, KnowsSafetensors) {
  for (const char* path :
       {"model.safetensors",
        "model-00001-of-00002.safetensors",
        "model.safetensors.index.json",
        "adapters.safetensors",
        "adapter_model.safetensors"}) {
    EXPECT_TRUE(has_safetensors(Paths{path})) << path;
  }
  EXPECT_FALSE(has_safetensors(Paths{"config.json", "x.gguf", "draft/model.safetensors"}));
}

}  // namespace
}  // namespace saker::hub
