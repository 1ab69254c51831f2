// SPDX-License-Identifier: Apache-2.0
#include "saker/server/http/router.h"

#include <gtest/gtest.h>

namespace saker::server::http {
namespace {

TEST(Router, FindsMethodsAndPaths) {
  Router router;
  const auto route = [](const std::shared_ptr<Exchange>&) {};
  router.add("GET", "/a", route);
  router.add("POST", "/a", route);
  router.add("GET", "/a/*", route);
  EXPECT_NE(router.find("GET", "/a").route, nullptr);
  EXPECT_NE(router.find("HEAD", "/a").route, nullptr);
  EXPECT_NE(router.find("GET", "/a/b/c").route, nullptr);
  EXPECT_EQ(router.find("PUT", "/a").route, nullptr);
  EXPECT_EQ(router.find("PUT", "/a").allowed, "GET, HEAD, POST");
  EXPECT_EQ(router.find("POST", "/a/b").allowed, "GET, HEAD");
  EXPECT_EQ(router.find("GET", "/ab").allowed, "");
  EXPECT_EQ(router.find("GET", "").allowed, "");
  EXPECT_EQ(router.find("GET", "/").allowed, "");
}

}  // namespace
}  // namespace saker::server::http
