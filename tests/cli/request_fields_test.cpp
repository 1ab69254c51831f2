// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/options/request_fields.h"

#include "saker/base/error.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace saker::cli {
namespace {

engine::GenerateRequest applied(const char* record) {
  engine::GenerateRequest request;
  apply_record(Json::parse(record), request);
  return request;
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

TEST(RequestFields, SetWhatTheRecordSays) {
  const auto request = applied(
      R"({"id": 3, "prompt": "p", "max_tokens": 7, "temperature": 1, "top_p": 0.5, "top_k": 4, "min_p": 0.1,
          "min_tokens_to_keep": 2, "xtc_probability": 0.2, "xtc_threshold": 0.3, "seed": 18446744073709551615,
          "repetition_penalty": 1.1, "repetition_context_size": 5, "presence_penalty": 0.2,
          "presence_context_size": 6, "frequency_penalty": 0.3, "frequency_context_size": 8,
          "logit_bias": {"4": -2.5}, "stop": "x", "ignore_eos": true, "logprobs": 2, "max_kv_size": 9, "kv_bits": 8,
          "dry_sequence_breakers": ["."], "template_kwargs": {"enable_thinking": false}})"
  );
  EXPECT_EQ(request.prompt, "p");
  EXPECT_EQ(request.max_tokens, 7);
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
  EXPECT_EQ(request.stop, std::vector<std::string>{"x"});
  EXPECT_TRUE(request.ignore_eos);
  EXPECT_EQ(request.logprobs, 2);
  EXPECT_EQ(request.max_kv_size, 9);
  EXPECT_EQ(request.kv_bits, 8);
  EXPECT_EQ(request.dry_sequence_breakers, std::vector<std::string>{"."});
  EXPECT_EQ(request.template_kwargs["enable_thinking"], false);
}

TEST(RequestFields, EveryFieldIsNamedOnce) {
  std::vector<std::string_view> names;
  for (const RequestField& field : request_fields()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), field.name), 0) << field.name;
    EXPECT_FALSE(field.help.empty());
    names.push_back(field.name);
    for (const std::string_view other : field.other_names()) {
      EXPECT_EQ(std::count(names.begin(), names.end(), other), 0) << other;
      EXPECT_EQ(find_field(other), &field);
      names.push_back(other);
    }
  }
}

TEST(RequestFields, FormerNamesAreAccepted) {
  EXPECT_EQ(applied(R"({"temp": 0.5})").sampling.temperature, 0.5);
  EXPECT_EQ(applied(R"({"kwargs": {"a": 1}})").template_kwargs["a"], 1);
  EXPECT_EQ(applied(R"({"chat_template_kwargs": {"a": 1}})").template_kwargs["a"], 1);
  EXPECT_EQ(applied(R"({"enable_thinking": true})").think, true);
  const std::vector<std::string> breakers{"."};
  EXPECT_EQ(applied(R"({"dry_sequence_breaker": "."})").dry_sequence_breakers, breakers);
  EXPECT_EQ(applied(R"({"dry_breakers": ["."]})").dry_sequence_breakers, breakers);
}

TEST(RequestFields, NamesOfOneOptionAgree) {
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

TEST(RequestFields, NameWhatIsWrong) {
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

TEST(RequestFields, NullIsNotGiven) {
  std::string record =
      R"({"id": 1, "prompt": "p", "tokens": null, "messages": null, "tools": null)";
  for (const RequestField& field : request_fields()) {
    record += ", \"" + std::string(field.name) + "\": null";
  }
  engine::GenerateRequest request;
  request.max_tokens = 7;
  apply_record(Json::parse(record + "}"), request);
  EXPECT_EQ(request.prompt, "p");
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_FALSE(request.tokens || request.messages || request.tools);
  EXPECT_EQ(applied(R"({"temp": null, "temperature": 0.5})").sampling.temperature, 0.5);
  EXPECT_EQ(applied(R"({"temp": 0.5, "temperature": null})").sampling.temperature, 0.5);
  EXPECT_NE(failure(R"({"colour": null})").find("colour"), std::string::npos);
}

TEST(RequestFields, WholeFloatsAreIntegers) {
  for (const RequestField& field : request_fields()) {
    if (field.kind == RequestField::Kind::kInteger ||
        field.kind == RequestField::Kind::kIntegerOrAuto) {
      engine::GenerateRequest request;
      EXPECT_NO_THROW(apply_record({{field.name, 8.0}}, request)) << field.name;
      EXPECT_THROW(apply_record({{field.name, 8.5}}, request), Error) << field.name;
      EXPECT_THROW(apply_record({{field.name, 1e300}}, request), Error) << field.name;
    }
  }
  EXPECT_EQ(applied(R"({"max_tokens": 1e2})").max_tokens, 100);
  EXPECT_EQ(applied(R"({"seed": 3.0})").sampling.seed, 3U);
  EXPECT_EQ(applied(R"({"tokens": [1.0, 2]})").tokens, (std::vector<std::int32_t>{1, 2}));
  EXPECT_NE(failure(R"({"max_tokens": 1.5})").find("got 1.5"), std::string::npos);
}

TEST(TokenList, ReadsIds) {
  EXPECT_EQ(parse_token_list("--tokens", "1,2,30"), (std::vector<std::int32_t>{1, 2, 30}));
  EXPECT_EQ(parse_token_list("--tokens", "7"), (std::vector<std::int32_t>{7}));
  EXPECT_TRUE(parse_token_list("--tokens", "").empty());
}

TEST(TokenList, RefusesAnythingElse) {
  for (const char* text : {",", "1,", "1,,2", "a", "1 2", " 1", "1.5", "99999999999"}) {
    EXPECT_THROW(parse_token_list("--tokens", text), Error) << text;
  }
}

}  // namespace
}  // namespace saker::cli
