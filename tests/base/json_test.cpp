// SPDX-License-Identifier: Apache-2.0
#include "saker/base/json/json.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace saker {
namespace {

using testing::expect_error;

TEST(ParseJson, ReadsWhatItIsGiven) {
  const std::string text = R"({"b":[1,-2,2.5,true,null],"a":{"x":"\u00e9"},"e":{},"f":[]})";
  EXPECT_EQ(
      parse_json(text, "test").dump(), R"({"b":[1,-2,2.5,true,null],"a":{"x":"é"},"e":{},"f":[]})"
  );
  EXPECT_EQ(parse_json("7", "test"), Json(7));
  EXPECT_EQ(parse_json(" \"x\" ", "test"), Json("x"));
}

TEST(ParseJson, NamesSourceAndPosition) {
  expect_error(ErrorCode::kCorruptData, {"config.json", "byte 6", "invalid literal"}, [] {
    parse_json(R"({"a":Nan})", "config.json");
  });
  expect_error(ErrorCode::kCorruptData, {"byte 1"}, [] { parse_json("", "config.json"); });
  expect_error(ErrorCode::kCorruptData, {"unexpected end"}, [] { parse_json("[1", "t"); });
  expect_error(ErrorCode::kCorruptData, {"byte 3"}, [] { parse_json("1 2", "t"); });
}

// A link in a model's folder may lead to any file.
TEST(ParseJson, DoesNotTellTheText) {
  for (const char* text :
       {"root:x:0:0", "{\"a\": secret}", "\"secret", "{\"secret' \"}", "[1, 2'secret'"}) {
    try {
      parse_json(text, "t");
      FAIL() << text;
    } catch (const Error& error) {
      const std::string line = error.what();
      EXPECT_EQ(line.find("secret"), std::string::npos) << line;
      EXPECT_EQ(line.find("r'"), std::string::npos) << line;
      EXPECT_NE(line.find("t: byte"), std::string::npos) << line;
    }
  }
}

TEST(ParseJson, RefusesWhatIsNoJson) {
  for (const std::string_view text :
       {"nan",
        "Infinit",
        "+Infinity",
        "-NaN",
        "[NaN,]",
        "[1,]",
        "{\"a\":1,}",
        "01",
        "1e999x",
        "'a'",
        "{a:1}",
        "\"\t\"",
        "\"\\ud800\"",
        "\"\xff\"",
        "\"\xc0\xaf\"",
        "// c\n1",
        "\x01"}) {
    expect_error(ErrorCode::kCorruptData, {"t: byte"}, [&] { parse_json(text, "t"); });
  }
}

TEST(ParseJson, SeesBytesBehindANul) {
  expect_error(ErrorCode::kCorruptData, {"t: byte 3", "NUL"}, [] {
    parse_json(std::string_view("{}\0}", 4), "t");
  });
}

TEST(ParseJson, BoundsNesting) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NO_THROW(parse_json(nested(kMaxJsonDepth), "t"));
  for (const std::size_t depth : {kMaxJsonDepth + 1, std::size_t{1'000'000}}) {
    expect_error(ErrorCode::kCorruptData, {"deeper than 200"}, [&] {
      parse_json(nested(depth), "t");
    });
  }
  std::string objects;
  for (int i = 0; i < 100'000; ++i) {
    objects += "{\"a\":";
  }
  expect_error(ErrorCode::kCorruptData, {"deeper than 200"}, [&] { parse_json(objects, "t"); });
}

TEST(ParseJson, BoundsTheNumberOfValues) {
  std::string text = "[";
  for (std::size_t i = 0; i < kMaxJsonValues; ++i) {
    text += "1,";
  }
  text += "1]";
  expect_error(ErrorCode::kCorruptData, {"more than"}, [&] { parse_json(text, "t"); });
}

// A look-up per member would take hours here.
// Looking at all earlier keys for each would outlast ctest's time limit.
TEST(ParseJson, TakesLinearTimeForWideObjects) {
  constexpr int kKeys = 600'000;
  std::string text = "{";
  for (int i = 0; i < kKeys; ++i) {
    text += fmt::format("\"key{}\":{},", i, i);
  }
  text += "\"last\":1}";
  EXPECT_EQ(parse_json(text, "t").size(), kKeys + 1U);
}

TEST(ParseJson, RepeatedKeys) {
  const std::string text = R"({"a":1,"b":2,"a":3,"c":4,"a":5})";
  EXPECT_EQ(parse_json(text, "t").dump(), R"({"b":2,"c":4,"a":5})");
  expect_error(ErrorCode::kCorruptData, {"'a'", "twice"}, [&] {
    parse_json(text, "t", RepeatedKeys::kRefuse);
  });
}

RC_GTEST_PROP(
    ParseJson, DumpedTextComesBack, (const std::map<std::string, std::vector<int>>& value)
) {
  Json json = Json::object();
  for (const auto& [key, numbers] : value) {
    std::string ascii = key;
    for (char& c : ascii) {
      c = static_cast<char>(c & 0x7f);
    }
    json[ascii] = numbers;
  }
  RC_ASSERT(parse_json(json.dump(), "t") == json);
}

RC_GTEST_PROP(ParseJson, AnyBytesGiveAValueOrAnError, (const std::string& text)) {
  try {
    parse_json(text, "t");
  } catch (const Error& error) {
    RC_ASSERT(error.code() == ErrorCode::kCorruptData);
  }
}

TEST(ReadJsonFile, NamesTheFile) {
  const testing::TemporaryDir dir;
  EXPECT_EQ(read_json_file(dir.write("good.json", "[1]")), Json::array({1}));
  expect_error(ErrorCode::kNotFound, {"missing.json"}, [&] {
    read_json_file(dir.path() / "missing.json");
  });
  expect_error(ErrorCode::kInvalidArgument, {"not a regular file"}, [&] {
    read_json_file(dir.path());
  });
  expect_error(ErrorCode::kCorruptData, {"bad.json", "byte 2"}, [&] {
    read_json_file(dir.write("bad.json", "[x"));
  });
}

class JsonMembers : public ::testing::Test {
 protected:
  const Json object_ = parse_json(
      R"({"int":3,"whole":4096.0,"half":2.5,"null":null,"text":"abc","true":true,"negative":-7,
          "huge":18446744073709551615,"float":1e300,"object":{"a":1},"array":[1,2]})",
      "test"
  );
};

TEST_F(JsonMembers, Integers) {
  EXPECT_EQ(json_int(object_, "int", 9), 3);
  EXPECT_EQ(json_int(object_, "whole", 9), 4096);
  EXPECT_EQ(json_int(object_, "negative", 9), -7);
  EXPECT_EQ(json_int(object_, "null", 9), 9);
  EXPECT_EQ(json_int(object_, "absent", 9), 9);
  for (const std::string_view key : {"half", "text", "true", "huge", "float", "object", "array"}) {
    expect_error(ErrorCode::kCorruptData, {fmt::format("'{}' is ", key), "an integer"}, [&] {
      json_int(object_, key, 9);
    });
  }
}

TEST_F(JsonMembers, IntegersInARange) {
  EXPECT_EQ(json_int_in(object_, "int", 1, 3), 3);
  expect_error(ErrorCode::kCorruptData, {"'negative' is -7", "from 1 to 100"}, [&] {
    json_int_in(object_, "negative", 1, 100);
  });
  expect_error(ErrorCode::kCorruptData, {"'huge' is 18446744073709551615", "from 1 to 100"}, [&] {
    json_int_in(object_, "huge", 1, 100);
  });
  expect_error(ErrorCode::kCorruptData, {"'absent' is missing", "from 1 to 100"}, [&] {
    json_int_in(object_, "absent", 1, 100);
  });
}

TEST_F(JsonMembers, OtherKinds) {
  EXPECT_EQ(json_double(object_, "half", 9), 2.5);
  EXPECT_EQ(json_double(object_, "int", 9), 3.0);
  EXPECT_EQ(json_double(object_, "null", 9), 9.0);
  EXPECT_TRUE(json_bool(object_, "true", false));
  EXPECT_TRUE(json_bool(object_, "absent", true));
  EXPECT_EQ(json_string(object_, "text", "x"), "abc");
  EXPECT_EQ(json_string(object_, "null", "x"), "x");
  expect_error(ErrorCode::kCorruptData, {"'text' is 'abc'", "finite number"}, [&] {
    json_double(object_, "text", 9);
  });
  expect_error(ErrorCode::kCorruptData, {"'int' is 3", "true or false"}, [&] {
    json_bool(object_, "int", false);
  });
  expect_error(ErrorCode::kCorruptData, {"'array' is an array of 2", "a string"}, [&] {
    json_string(object_, "array", "");
  });
}

TEST_F(JsonMembers, NeedAnObject) {
  expect_error(ErrorCode::kCorruptData, {"'a'", "expected an object"}, [] {
    json_int(Json::array(), "a", 0);
  });
}

TEST(DescribeJson, IsShort) {
  EXPECT_EQ(describe_json(Json("a\nb")), "'a\\x0ab'");
  EXPECT_LT(describe_json(Json(std::string(100'000, 'x'))).size(), 200U);
  EXPECT_EQ(describe_json(Json(nullptr)), "null");
}

}  // namespace
}  // namespace saker
