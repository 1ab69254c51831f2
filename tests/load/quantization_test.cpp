// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/quantization.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/kernels/storage/packed_weight.h"
#include "saker/nn/weights/weights.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

using kernels::WeightFormat;
using kernels::WeightKind;
using testing::expect_error;

nn::QuantizationConfig parse(std::string_view config) {
  return parse_quantization(parse_json(config, "config"));
}

TEST(Quantization, NoneForFloatWeights) {
  for (const std::string_view config :
       {"{}", R"({"quantization":null})", R"({"text_config":{"hidden_size":8}})"}) {
    EXPECT_FALSE(parse(config).format);
    EXPECT_TRUE(parse(config).overrides.empty());
  }
}

TEST(Quantization, EveryFormatOfMlx) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group_size : {32, 64, 128}) {
      const Json config = {{"quantization", {{"bits", bits}, {"group_size", group_size}}}};
      EXPECT_EQ(
          parse_quantization(config).format, (WeightFormat{WeightKind::kAffine, bits, group_size})
      );
    }
  }
  const auto mode = [](std::string_view name) {
    return parse_quantization({{"quantization", {{"mode", name}}}}).format;
  };
  EXPECT_EQ(mode("affine"), (WeightFormat{WeightKind::kAffine, 4, 64}));
  EXPECT_EQ(mode("mxfp4"), (WeightFormat{WeightKind::kMxfp4, 4, 32}));
  EXPECT_EQ(mode("nvfp4"), (WeightFormat{WeightKind::kNvfp4, 4, 16}));
  EXPECT_EQ(mode("mxfp8"), (WeightFormat{WeightKind::kMxfp8, 8, 32}));
}

TEST(Quantization, FindsTheSection) {
  const WeightFormat expected{WeightKind::kAffine, 8, 32};
  EXPECT_EQ(parse(R"({"quantization_config":{"bits":8,"group_size":32}})").format, expected);
  EXPECT_EQ(
      parse(R"({"text_config":{"quantization":{"bits":8,"group_size":32}}})").format, expected
  );
  // MLX's own section wins over what the original's tool left behind.
  EXPECT_EQ(
      parse(
          R"({"quantization_config":{"quant_method":"fp8"},"quantization":{"bits":8,"group_size":32}})"
      )
          .format,
      expected
  );
}

TEST(Quantization, ModulesOfTheirOwn) {
  const auto config = parse(R"({"quantization":{"bits":4,"group_size":64,"linear_class":"x",
      "lm_head":false,"model.embed_tokens":{"bits":8,"group_size":32},
      "model.norm":true,"model.layers.0.mlp.gate":{"mode":"mxfp8"}}})");
  ASSERT_EQ(config.overrides.size(), 3U);
  EXPECT_EQ(config.overrides.at("lm_head"), std::nullopt);
  EXPECT_EQ(config.overrides.at("model.embed_tokens"), (WeightFormat{WeightKind::kAffine, 8, 32}));
  EXPECT_EQ(
      config.overrides.at("model.layers.0.mlp.gate"), (WeightFormat{WeightKind::kMxfp8, 8, 32})
  );
}

TEST(Quantization, NamesOtherToolsFormats) {
  for (const std::string method :
       {"awq", "gptq", "fp8", "compressed-tensors", "bitnet", "bitsandbytes", "mxfp4"}) {
    const Json section = {{"quant_method", method}, {"bits", 4}};
    expect_error(ErrorCode::kUnsupported, {"quantization_config.quant_method", method}, [&] {
      parse_quantization({{"quantization_config", section}});
    });
    expect_error(ErrorCode::kUnsupported, {"quantization_config.quant_method", method}, [&] {
      parse_quantization({{"text_config", {{"quantization_config", section}}}});
    });
  }
}

TEST(Quantization, NamesBadValues) {
  struct Case {
    std::string_view section;
    ErrorCode code;
    std::vector<std::string_view> words;
  };

  const std::vector<Case> cases = {
      {R"({"bits":1})", ErrorCode::kUnsupported, {"quantization.bits", "is 1", "2, 3, 4, 5, 6, 8"}},
      {R"({"bits":7})", ErrorCode::kUnsupported, {"is 7"}},
      {R"({"bits":-4})", ErrorCode::kUnsupported, {"is -4"}},
      {R"({"bits":4294967300})", ErrorCode::kUnsupported, {"is 4294967300"}},
      {R"({"bits":18446744073709551612})", ErrorCode::kUnsupported, {"is 18446744073709551612"}},
      {R"({"bits":"4"})", ErrorCode::kCorruptData, {"bits", "is '4'"}},
      {R"({"bits":4.5})", ErrorCode::kCorruptData, {"bits", "is 4.5"}},
      {R"({"group_size":0})", ErrorCode::kUnsupported, {"group_size", "is 0", "32, 64, 128"}},
      {R"({"group_size":16})", ErrorCode::kUnsupported, {"is 16"}},
      {R"({"mode":"nvfp4","group_size":32})", ErrorCode::kUnsupported, {"group_size", "expected 16"}
      },
      {R"({"mode":"mxfp8","bits":4})", ErrorCode::kUnsupported, {"bits", "expected 8"}},
      {R"({"mode":"q4_k"})", ErrorCode::kUnsupported, {"mode", "'q4_k'"}},
      {R"({"mode":4})", ErrorCode::kCorruptData, {"mode", "is 4"}},
      {R"({"lm_head":{"bits":9}})", ErrorCode::kUnsupported, {"lm_head.bits", "is 9"}},
      {"7", ErrorCode::kCorruptData, {"'quantization' is 7"}},
      {"[]", ErrorCode::kCorruptData, {"'quantization' is an array of 0"}},
  };
  for (const Case& item : cases) {
    SCOPED_TRACE(item.section);
    expect_error(item.code, item.words, [&] {
      parse(std::string(R"({"quantization":)") + std::string(item.section) + "}");
    });
  }
  expect_error(ErrorCode::kCorruptData, {"config is an array"}, [] { parse("[]"); });
}

}  // namespace
}  // namespace saker::load
