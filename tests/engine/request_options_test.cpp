// SPDX-License-Identifier: Apache-2.0
#include "saker/base/error.h"
#include "saker/engine/options/apply_options.h"
#include "saker/engine/options/request_option.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace saker::engine {
namespace {

Request applied(const char* record) {
  Request request;
  apply_record(Json::parse(record), request);
  return request;
}

// The request with one option; none if it is refused.
std::optional<Request> with(const RequestOption& option, const Json& value) {
  Request request;
  try {
    apply_option(option, option.name, value, request);
    check_request(request);
  } catch (const Error& error) {
    EXPECT_TRUE(std::string_view(error.what()).starts_with(option.name)) << error.what();
    return std::nullopt;
  }
  return request;
}

// A text of the table as a value of the option.
Json value_of(const RequestOption& option, std::string_view text) {
  const bool is_text = option.kind == OptionKind::kText || text == "auto";
  return is_text ? Json(text) : Json::parse(text);
}

// A value that every request takes.
Json example(const RequestOption& option) {
  switch (option.kind) {
    case OptionKind::kInteger:
    case OptionKind::kIntegerOrAuto:
      return 8;
    case OptionKind::kNumber:
      return std::isfinite(option.range.low) ? option.range.low : 0.5;
    case OptionKind::kFlag:
    case OptionKind::kSwitch:
      return true;
    case OptionKind::kText:
      return option.values.substr(0, option.values.find('|'));
    case OptionKind::kTexts:
      return Json::array({"x"});
    case OptionKind::kObject:
      return {{"1", 2}};
    case OptionKind::kPath:
      return "x";
    case OptionKind::kList:
      return Json::array();
    case OptionKind::kSchema:
      return true;
    case OptionKind::kTextFile:
      return "start: \"x\"";
  }
  return {};
}

std::string failure(const char* record) {
  try {
    applied(record);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(RequestOptions, SetWhatTheRecordSays) {
  const auto request = applied(
      R"({"id": 3, "prompt": "p", "max_tokens": 7, "temperature": 1, "top_p": 0.5, "top_k": 4, "min_p": 0.1,
          "min_tokens_to_keep": 2, "xtc_probability": 0.2, "xtc_threshold": 0.3, "seed": 18446744073709551615,
          "repetition_penalty": 1.1, "repetition_context_size": 5, "presence_penalty": 0.2,
          "presence_context_size": 6, "frequency_penalty": 0.3, "frequency_context_size": 8,
          "logit_bias": {"4": -2.5}, "stop": "x", "ignore_eos": true, "logprobs": 2, "max_kv_size": 9, "kv_bits": 8,
          "dry_sequence_breakers": ["."], "template_kwargs": {"enable_thinking": false}})"
  );
  EXPECT_EQ(request.prompt.text, "p");
  EXPECT_EQ(request.output.max_tokens, 7);
  EXPECT_EQ(request.sampling.temperature, 1.0);
  EXPECT_EQ(request.sampling.top_p, 0.5);
  EXPECT_EQ(request.sampling.top_k, 4);
  EXPECT_EQ(request.sampling.min_p, 0.1);
  EXPECT_EQ(request.sampling.min_tokens_to_keep, 2);
  EXPECT_EQ(request.sampling.xtc_probability, 0.2);
  EXPECT_EQ(request.sampling.xtc_threshold, 0.3);
  EXPECT_EQ(request.sampling.seed, 18446744073709551615ULL);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.1);
  EXPECT_EQ(request.sampling.repetition_context_size, 5);
  EXPECT_EQ(request.sampling.presence_penalty, 0.2);
  EXPECT_EQ(request.sampling.presence_context_size, 6);
  EXPECT_EQ(request.sampling.frequency_penalty, 0.3);
  EXPECT_EQ(request.sampling.frequency_context_size, 8);
  EXPECT_EQ(request.sampling.logit_bias.at(4), -2.5);
  EXPECT_EQ(request.output.stop, std::vector<std::string>{"x"});
  EXPECT_TRUE(request.output.ignore_eos);
  EXPECT_EQ(request.output.logprobs, 2);
  EXPECT_EQ(request.placement.max_kv_size, 9);
  EXPECT_EQ(request.placement.kv_bits, 8);
  EXPECT_EQ(request.sampling.dry_sequence_breakers, std::vector<std::string>{"."});
  EXPECT_EQ(request.prompt.template_kwargs["enable_thinking"], false);
}

TEST(RequestOptions, EveryOptionIsNamedOnce) {
  std::vector<std::string_view> names;
  for (const RequestOption& option : request_options()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), option.name), 0) << option.name;
    EXPECT_FALSE(option.help.empty());
    names.push_back(option.name);
    for (const std::string_view other : option.other_names()) {
      EXPECT_EQ(std::count(names.begin(), names.end(), other), 0) << other;
      EXPECT_EQ(find_option(other), &option);
      names.push_back(other);
    }
  }
}

TEST(RequestOptions, FormerNamesAreAccepted) {
  EXPECT_EQ(applied(R"({"temp": 0.5})").sampling.temperature, 0.5);
  EXPECT_EQ(applied(R"({"kwargs": {"a": 1}})").prompt.template_kwargs["a"], 1);
  EXPECT_EQ(applied(R"({"chat_template_kwargs": {"a": 1}})").prompt.template_kwargs["a"], 1);
  EXPECT_EQ(applied(R"({"enable_thinking": true})").prompt.think, true);
  const std::vector<std::string> breakers{"."};
  EXPECT_EQ(applied(R"({"dry_sequence_breaker": "."})").sampling.dry_sequence_breakers, breakers);
  EXPECT_EQ(applied(R"({"dry_breakers": ["."]})").sampling.dry_sequence_breakers, breakers);
}

TEST(RequestOptions, RecordsTakeWhatTheTableSays) {
  for (const RequestOption& option : request_options()) {
    Request request;
    const auto apply = [&] { apply_record({{option.name, example(option)}}, request); };
    if (option.doors.record) {
      EXPECT_NO_THROW(apply()) << option.name;
    } else {
      EXPECT_THROW(apply(), Error) << option.name;
    }
  }
}

TEST(RequestOptions, RangesAreChecked) {
  for (const RequestOption& option : request_options()) {
    const bool is_whole =
        option.kind == OptionKind::kInteger || option.kind == OptionKind::kIntegerOrAuto;
    const auto takes = [&](double number) {
      const Json value = is_whole ? Json(static_cast<std::int64_t>(number)) : Json(number);
      return with(option, value).has_value();
    };
    const double step = is_whole ? 1.0 : 1e-6;
    if (std::isfinite(option.range.low)) {
      EXPECT_TRUE(takes(option.range.low)) << option.name;
      EXPECT_FALSE(takes(option.range.low - step)) << option.name;
    }
    if (std::isfinite(option.range.high)) {
      EXPECT_TRUE(takes(option.range.high)) << option.name;
      EXPECT_FALSE(takes(option.range.high + step)) << option.name;
    }
  }
}

TEST(RequestOptions, WordsAreTheOnesOfTheTable) {
  for (const RequestOption& option : request_options()) {
    if (option.values.find('|') == std::string_view::npos) {
      continue;
    }
    std::istringstream words{std::string(option.values)};
    for (std::string word; std::getline(words, word, '|');) {
      EXPECT_TRUE(with(option, value_of(option, word))) << option.name << " " << word;
    }
    EXPECT_FALSE(with(option, value_of(option, "3"))) << option.name;
  }
}

// A default of the table leaves a request as it is.
TEST(RequestOptions, DefaultsAreThoseOfARequest) {
  const Request plain;
  for (const RequestOption& option : request_options()) {
    if (option.fallback.empty() || option.kind == OptionKind::kTexts ||
        option.name == "speculate") {
      continue;  // In words.
    }
    const std::string_view text = option.fallback.substr(0, option.fallback.find(';'));
    const auto request = with(option, value_of(option, text));
    ASSERT_TRUE(request) << option.name;
    EXPECT_EQ(request->sampling, plain.sampling) << option.name;
    EXPECT_EQ(request->output.max_tokens, plain.output.max_tokens);
    EXPECT_EQ(request->drafting.acceptance, plain.drafting.acceptance);
    EXPECT_EQ(request->drafting.depth, plain.drafting.depth);
    EXPECT_EQ(request->placement.max_kv_size, plain.placement.max_kv_size);
    EXPECT_EQ(request->placement.kv_bits, plain.placement.kv_bits);
    EXPECT_EQ(request->placement.adapter_scale, plain.placement.adapter_scale);
    EXPECT_EQ(request->prompt.think, plain.prompt.think);
  }
}

TEST(RequestOptions, TheTableIsAlsoJson) {
  const Json table = option_table();
  ASSERT_EQ(table.size(), request_options().size());
  const auto row = std::ranges::find(table, "cache_in", [](const Json& r) { return r.at("name"); });
  ASSERT_NE(row, table.end());
  EXPECT_EQ(row->at("kind"), "path");
  EXPECT_EQ(row->at("doors"), (Json{"generate", "keyword"}));
  EXPECT_EQ(table.front().at("low"), 1);
  EXPECT_TRUE(table.front().at("high").is_null());
}

TEST(RequestOptions, NamesOfOneOptionAgree) {
  EXPECT_NE(
      failure(R"({"chat_template_kwargs": {"a": 1}, "kwargs": {"a": 2}})")
          .find("kwargs and chat_template_kwargs are the same option"),
      std::string::npos
  );
  EXPECT_EQ(applied(R"({"temperature": 0.5})").sampling.temperature, 0.5);
  EXPECT_EQ(applied(R"({"temp": 1, "temperature": 1.0})").sampling.temperature, 1.0);
  for (const char* record :
       {R"({"temp": 0.5, "temperature": 1})", R"({"temperature": 1, "temp": 0})"}) {
    const std::string message = failure(record);
    EXPECT_NE(message.find("temperature and temp"), std::string::npos) << message;
  }
  EXPECT_NE(
      failure(R"({"temperature": "hot"})").find("temperature: got string"), std::string::npos
  );
}

TEST(RequestOptions, NameWhatIsWrong) {
  EXPECT_NE(failure(R"({"colour": 1})").find("colour"), std::string::npos);
  EXPECT_NE(
      failure(R"({"temp": "hot"})").find("temp: got string 'hot', expected a number"),
      std::string::npos
  );
  EXPECT_NE(failure(R"({"max_tokens": 1.5})").find("an integer"), std::string::npos);
  EXPECT_NE(failure(R"({"max_tokens": 99999999999})").find("out of range"), std::string::npos);
  EXPECT_NE(failure(R"({"seed": -1})").find("seed"), std::string::npos);
  EXPECT_NE(failure(R"({"stop": [1]})").find("stop"), std::string::npos);
  EXPECT_NE(failure(R"({"tokens": [1.5]})").find("1.5"), std::string::npos);
  EXPECT_NE(failure(R"({"tokens": 3})").find("tokens"), std::string::npos);
  EXPECT_NE(failure(R"({"prompt": []})").find("prompt"), std::string::npos);
  EXPECT_NE(failure(R"({"logit_bias": {"x": 1}})").find("logit_bias"), std::string::npos);
  EXPECT_NE(failure("[]").find("expected a JSON object"), std::string::npos);
}

// Flags and Modelfiles may hold any bytes.
TEST(RequestOptions, TextsAreUtf8) {
  for (const Json& value : {Json("a\xff"), Json({"b", "a\xff"})}) {
    for (const auto* name : {"choices", "stop", "regex", "temperature"}) {
      Request request;
      saker::testing::expect_error(ErrorCode::kInvalidArgument, {name, "0xff at offset 1"}, [&] {
        apply_record(Json{{name, value}}, request);
      });
    }
  }
}

TEST(RequestOptions, NullIsNotGiven) {
  std::string record = R"({"id": 1, "prompt": "p", "tokens": null, "messages": null)";
  for (const RequestOption& option : request_options()) {
    if (option.doors.record) {
      record += ", \"" + std::string(option.name) + "\": null";
    }
  }
  Request request;
  request.output.max_tokens = 7;
  apply_record(Json::parse(record + "}"), request);
  EXPECT_EQ(request.prompt.text, "p");
  EXPECT_EQ(request.output.max_tokens, 7);
  EXPECT_FALSE(request.prompt.tokens || request.prompt.messages || request.prompt.tools);
  EXPECT_EQ(applied(R"({"temp": null, "temperature": 0.5})").sampling.temperature, 0.5);
  EXPECT_EQ(applied(R"({"temp": 0.5, "temperature": null})").sampling.temperature, 0.5);
  EXPECT_NE(failure(R"({"colour": null})").find("colour"), std::string::npos);
}

TEST(RequestOptions, WholeFloatsAreIntegers) {
  for (const RequestOption& option : request_options()) {
    if (option.kind == OptionKind::kInteger || option.kind == OptionKind::kIntegerOrAuto) {
      Request request;
      EXPECT_NO_THROW(apply_record({{option.name, 8.0}}, request)) << option.name;
      EXPECT_THROW(apply_record({{option.name, 8.5}}, request), Error) << option.name;
      EXPECT_THROW(apply_record({{option.name, 1e300}}, request), Error) << option.name;
    }
  }
  EXPECT_EQ(applied(R"({"max_tokens": 1e2})").output.max_tokens, 100);
  EXPECT_EQ(applied(R"({"seed": 3.0})").sampling.seed, 3U);
  EXPECT_EQ(applied(R"({"tokens": [1.0, 2]})").prompt.tokens, (std::vector<std::int32_t>{1, 2}));
  EXPECT_NE(failure(R"({"max_tokens": 1.5})").find("got 1.5"), std::string::npos);
}

}  // namespace
}  // namespace saker::engine
