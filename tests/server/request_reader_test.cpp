// SPDX-License-Identifier: Apache-2.0
#include "saker/server/http/request_reader.h"

#include <gmock/gmock.h>

#include <string>

namespace saker::server::http {
namespace {

using Stage = RequestReader::Stage;

const Limits kLimits{.head_bytes = 1024, .headers = 16, .body_bytes = 100};

// The status of a text that is refused; 0 if it is not.
int refused(const std::string& text) {
  RequestReader reader(kLimits);
  return reader.take(text) == Stage::kBad ? reader.bad().status : 0;
}

TEST(RequestReader, ReadsARequestInAnyPieces) {
  const std::string text =
      "POST /v1/a%20b?x=1 HTTP/1.1\r\nHost: localhost\r\nX-Key: Value \r\nContent-Length: "
      "5\r\n\r\nhello";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    RequestReader reader(kLimits);
    Stage stage = Stage::kHead;
    for (std::size_t i = 0; i < text.size(); i += size) {
      ASSERT_NE(stage, Stage::kDone);
      stage = reader.take(std::string_view(text).substr(i, size));
    }
    ASSERT_EQ(stage, Stage::kDone) << size;
    const Request request = reader.release();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/v1/a b");
    EXPECT_EQ(request.query, "x=1");
    EXPECT_EQ(request.header("x-key"), "Value");
    EXPECT_EQ(request.body, "hello");
    EXPECT_TRUE(request.keep_alive);
  }
}

TEST(RequestReader, ReadsRequestsOneAfterTheOther) {
  RequestReader reader(kLimits);
  const std::string one = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string two = "GET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  ASSERT_EQ(reader.take(one + two), Stage::kDone);
  EXPECT_EQ(reader.release().path, "/1");
  ASSERT_EQ(reader.take(""), Stage::kDone);
  const Request second = reader.release();
  EXPECT_EQ(second.path, "/2");
  EXPECT_FALSE(second.keep_alive);
  EXPECT_EQ(reader.take(""), Stage::kHead);
  EXPECT_FALSE(reader.has_begun());
}

TEST(RequestReader, ReadsChunks) {
  RequestReader reader(kLimits);
  ASSERT_EQ(
      reader.take("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
      Stage::kBody
  );
  ASSERT_EQ(reader.take("2\r\nde\r\n0\r\n\r\n"), Stage::kDone);
  EXPECT_EQ(reader.release().body, "abcde");
}

TEST(RequestReader, SaysWhenTheClientWaits) {
  RequestReader reader(kLimits);
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n";
  ASSERT_EQ(reader.take(head + "Expect: 100-continue\r\n\r\n"), Stage::kBody);
  EXPECT_TRUE(reader.wants_continue());
  EXPECT_FALSE(reader.wants_continue());
  ASSERT_EQ(reader.take("ok"), Stage::kDone);
}

TEST(RequestReader, RefusesWhatTwoReadersCouldUnderstandDifferently) {
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(refused(post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), 400);
  EXPECT_EQ(refused(post + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nab"), 400);
  EXPECT_EQ(
      refused(post + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400
  );
  EXPECT_EQ(
      refused(post + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n"), 400
  );
  EXPECT_NE(refused(post + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"), 0);
  EXPECT_NE(refused(post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), 0);
  EXPECT_EQ(refused(post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(refused(post + "Content-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(refused(post + "Content-Length: +1\r\n\r\na"), 400);
  EXPECT_EQ(refused(post + "Content-Length: 0x1\r\n\r\na"), 400);
  EXPECT_EQ(refused(get + "X: a\r\n b\r\n\r\n"), 400);
  EXPECT_EQ(refused(get + "X: a\rY: b\r\n\r\n"), 400);
  EXPECT_EQ(refused(get + "X: a\nY: b\r\n\r\n"), 400);
  EXPECT_EQ(refused(get + std::string("X: a\0b\r\n\r\n", 10)), 400);
  EXPECT_EQ(refused(get + "Host: b\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(refused("\x16\x03\x01\r\n\r\n"), 400);
}

TEST(RequestReader, BoundsWhatItHolds) {
  const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(refused(get + "X: " + std::string(2000, 'a')), 431);
  std::string many = get;
  for (int i = 0; i < 20; ++i) {
    many += "X: a\r\n";
  }
  EXPECT_EQ(refused(many + "\r\n"), 431);
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(refused(post + "Content-Length: 101\r\n\r\n"), 413);
  EXPECT_EQ(refused(post + "Content-Length: 99999999999999999999\r\n\r\n"), 400);
  const std::string chunk = "40\r\n" + std::string(64, 'a') + "\r\n";
  EXPECT_EQ(refused(post + "Transfer-Encoding: chunked\r\n\r\n" + chunk + chunk + chunk), 413);
}

TEST(ResponseHead, HasNoLineOfAClient) {
  const std::string head = response_head(
      {.headers = {{"X-A", "b\r\nSet-Cookie: c"}, {"X-B", "fine"}}}, 2, Framing::kLength, true
  );
  EXPECT_THAT(head, testing::Not(testing::HasSubstr("Set-Cookie")));
  EXPECT_THAT(head, testing::HasSubstr("X-B: fine\r\n"));
  EXPECT_THAT(head, testing::HasSubstr("Content-Length: 2\r\n"));
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n")) << head;
}

TEST(DecodedPath, TakesPercentSigns) {
  EXPECT_EQ(decoded_path("/a%2Fb"), "/a/b");
  EXPECT_EQ(decoded_path("http://host/a"), "/a");
  EXPECT_EQ(decoded_path("/a%2"), std::nullopt);
  EXPECT_EQ(decoded_path("/a%zz"), std::nullopt);
}

TEST(Chunk, IsOneChunk) {
  EXPECT_EQ(chunk("hello world, again"), "12\r\nhello world, again\r\n");
  EXPECT_EQ(last_chunk(), "0\r\n\r\n");
}

}  // namespace
}  // namespace saker::server::http
