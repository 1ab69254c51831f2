// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/fields.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace saker::server {
namespace {

// The field at fault; empty if nothing is thrown.
std::string fault(const std::function<void()>& read) {
  try {
    read();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.param();
  }
  return "";
}

TEST(Fields, ReadsTypedMembers) {
  const Json object = Json::parse(
      R"({"i": 3, "w": 4.0, "d": 0.5, "b": true, "t": "x", "n": null, "l": ["a", "b"], "big": 18446744073709551615})"
  );
  Fields fields(object);
  EXPECT_EQ(fields.integer("i"), 3);
  EXPECT_EQ(fields.integer("w"), 4);
  EXPECT_EQ(fields.number("d", 0, 1), 0.5);
  EXPECT_EQ(fields.flag("b"), true);
  EXPECT_EQ(fields.text("t"), "x");
  EXPECT_EQ(fields.texts("t").size(), 1U);
  EXPECT_EQ(fields.texts("l").size(), 2U);
  EXPECT_EQ(fields.integer("n"), std::nullopt);
  EXPECT_EQ(fields.text("absent"), std::nullopt);
  EXPECT_EQ(fault([&] { fields.integer("big"); }), "big");
}

TEST(Fields, NamesTheFieldAtFault) {
  const Json object = Json::parse(R"({"a": "1", "b": 1.5, "c": {"d": []}, "e": [1], "f": 9})");
  Fields fields(object, "x");
  EXPECT_EQ(fault([&] { fields.integer("a"); }), "x.a");
  EXPECT_EQ(fault([&] { fields.integer("b"); }), "x.b");
  EXPECT_EQ(fault([&] { fields.flag("a"); }), "x.a");
  EXPECT_EQ(fault([&] { fields.text("b"); }), "x.b");
  EXPECT_EQ(fault([&] { fields.texts("e"); }), "x.e");
  EXPECT_EQ(fault([&] { fields.integer("f", 0, 8); }), "x.f");
  EXPECT_EQ(fault([&] { fields.number("f", 0, 8); }), "x.f");
  EXPECT_EQ(fault([&] { fields.required("z"); }), "x.z");
  EXPECT_EQ(fault([&] { Fields(object["e"], "x.e"); }), "x.e");
}

TEST(Fields, RefusesOnlyWhatAsksForSomething) {
  const Json object = Json::parse(R"({"a": null, "b": false, "c": [], "d": "", "e": 0, "f": 1})");
  Fields fields(object);
  EXPECT_EQ(fault([&] { fields.refuse({"a", "b", "c", "d", "e", "absent"}); }), "");
  EXPECT_EQ(fault([&] { fields.refuse({"f"}); }), "f");
}

TEST(ParseBody, RefusesWhatIsNoJson) {
  for (const std::string body :
       {"", "{", "{\"a\": \"\xff\"}", "nul", "{} {}", std::string(1'000'000, '[').c_str()}) {
    EXPECT_THROW(parse_body(body), ApiError) << body.substr(0, 20);
  }
  EXPECT_EQ(parse_body("{\"a\": 1}").size(), 1U);
}

}  // namespace
}  // namespace saker::server
