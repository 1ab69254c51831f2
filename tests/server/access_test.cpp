// SPDX-License-Identifier: Apache-2.0
#include "saker/server/http/access.h"

#include <gmock/gmock.h>

#include <string>

namespace saker::server::http {
namespace {

Request from(std::vector<Header> headers) {
  return {
      .method = "POST", .path = "/v1/x", .query = {}, .headers = std::move(headers), .body = {}
  };
}

bool is_let_in(const Access& access, const std::string& host, const std::string& origin = {}) {
  std::vector<Header> headers{{"Host", host}};
  if (!origin.empty()) {
    headers.emplace_back("Origin", origin);
  }
  return !access.check_source(from(headers));
}

TEST(Access, TakesNamesOfThisMachineAlone) {
  const Access access({.hosts = {"model.example"}});
  for (const std::string host :
       {"localhost",
        "LOCALHOST:8080",
        "127.0.0.1:80",
        "[::1]:8080",
        "a.localhost",
        "10.0.0.7",
        "model.example",
        "model.example:8080"}) {
    EXPECT_TRUE(is_let_in(access, host)) << host;
  }
  for (const std::string host :
       {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evillocalhost"}) {
    EXPECT_FALSE(is_let_in(access, host)) << host;
  }
  EXPECT_TRUE(is_let_in(Access({.keys = {{"a", "b"}}}), "any.example"));
}

TEST(Access, TakesPagesOfThisMachineAlone) {
  const Access access({.origins = {"https://chat.example"}});
  for (const std::string origin :
       {"http://localhost:3000", "http://127.0.0.1", "http://[::1]:1", "https://chat.example"}) {
    EXPECT_TRUE(is_let_in(access, "localhost", origin)) << origin;
  }
  for (const std::string origin :
       {"https://evil.example", "null", "https://chat.example.evil", "http://10.0.0.1", "file://"
       }) {
    EXPECT_FALSE(is_let_in(access, "localhost", origin)) << origin;
  }
  EXPECT_TRUE(is_let_in(access, "10.0.0.1:80", "http://10.0.0.1:80"));
  EXPECT_TRUE(is_let_in(Access({.origins = {"*"}}), "localhost", "https://any.example"));
  EXPECT_TRUE(access.check_source(
      from({{"Host", "localhost"}, {"Origin", "http://localhost"}, {"Origin", "https://evil"}})
  ));
}

TEST(Access, KnowsKeysByEitherHeader) {
  const Access access({.keys = {{"one", "secret"}, {"two", "other", -5}}});
  const auto name = [&](const Request& request) {
    const auto caller = access.caller(request);
    return caller ? std::optional(caller->name) : std::nullopt;
  };
  EXPECT_EQ(name(from({{"Authorization", "Bearer secret"}})), "one");
  EXPECT_EQ(name(from({{"authorization", "bearer other"}})), "two");
  EXPECT_EQ(name(from({{"X-Api-Key", "other"}})), "two");
  for (const std::string wrong : {"", "Secret", "secret ", "secre", "secretsecret"}) {
    EXPECT_EQ(name(from({{"X-Api-Key", wrong}})), std::nullopt) << wrong;
  }
  EXPECT_EQ(name(from({})), std::nullopt);
  EXPECT_EQ(access.caller(from({{"X-Api-Key", "other"}}))->priority, -5);
  EXPECT_EQ(Access({}).caller(from({}))->name, "");
}

TEST(Access, AnswersPreflights) {
  const Access access({});
  const Response response = access.preflight(from(
      {{"Host", "localhost"},
       {"Origin", "http://localhost:1"},
       {"Access-Control-Request-Headers", "authorization, x-stainless-os"}}
  ));
  EXPECT_EQ(response.status, 204);
  EXPECT_THAT(
      response.headers,
      testing::Contains(Header("Access-Control-Allow-Headers", "authorization, x-stainless-os"))
  );
  const Response plain =
      access.preflight(from({{"Access-Control-Request-Headers", "a\r\nSet-Cookie: b"}}));
  EXPECT_THAT(
      plain.headers,
      testing::Contains(
          Header("Access-Control-Allow-Headers", "authorization, content-type, x-api-key")
      )
  );
}

}  // namespace
}  // namespace saker::server::http
