// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/environment.h"

#include "saker/base/error.h"

#include "tests/support/environment.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <chrono>

namespace saker::hub {
namespace {

using testing::expect_error;
using testing::HubEnvironment;
using testing::TemporaryDir;

TEST(Environment, CacheFolder) {
  {
    const HubEnvironment set({{"HF_HUB_CACHE", "/a"}, {"HF_HOME", "/b"}, {"HOME", "/d"}});
    EXPECT_EQ(cache_dir(), "/a");
  }
  {
    const HubEnvironment set({{"HF_HOME", "/b"}, {"XDG_CACHE_HOME", "/c"}, {"HOME", "/d"}});
    EXPECT_EQ(cache_dir(), "/b/hub");
  }
  {
    const HubEnvironment set({{"XDG_CACHE_HOME", "/c"}, {"HOME", "/d"}});
    EXPECT_EQ(cache_dir(), "/c/huggingface/hub");
  }
  {
    const HubEnvironment set({{"HF_HUB_CACHE", ""}, {"HOME", "/d"}});
    EXPECT_EQ(cache_dir(), "/d/.cache/huggingface/hub");
  }
  {
    const HubEnvironment set({{"HF_HOME", "~/x"}, {"HOME", "/d"}});
    EXPECT_EQ(cache_dir(), "/d/x/hub");
  }
  {
    const HubEnvironment set(
        {{"HF_HOME", "$HOME-x/${XDG_CACHE_HOME}"}, {"HOME", "/d"}, {"XDG_CACHE_HOME", "y"}}
    );
    EXPECT_EQ(cache_dir(), "/d-x/y/hub");
  }
  {
    const HubEnvironment set(
        {{"XDG_CACHE_HOME", "~/$HF_TOKEN"}, {"HOME", "/d"}, {"HF_TOKEN", "$HOME"}}
    );
    EXPECT_EQ(cache_dir(), "/d/$HOME/huggingface/hub");
  }
  {
    const HubEnvironment set(
        {{"HUGGINGFACE_HUB_CACHE", "/$HF_TOKEN/${HF_TOKEN}/${HOME/$$HOME$"}, {"HOME", "d"}}
    );
    EXPECT_EQ(cache_dir(), "/$HF_TOKEN/${HF_TOKEN}/${HOME/$d$");
  }
}

TEST(Environment, Endpoint) {
  {
    const HubEnvironment set({});
    EXPECT_EQ(endpoint(), "https://huggingface.co");
  }
  const HubEnvironment set{{{"HF_ENDPOINT", "http://localhost:80//"}}};
  EXPECT_EQ(endpoint(), "http://localhost:80");
}

TEST(Environment, Token) {
  const TemporaryDir home;
  {
    const HubEnvironment set{{{"HF_HOME", home.path()}}};
    EXPECT_EQ(token(), "");
    home.write("token", "hf_file\n");
    EXPECT_EQ(token(), "hf_file");
  }
  {
    const HubEnvironment set(
        {{"HF_TOKEN", "hf_variable"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "TRUE"}}
    );
    EXPECT_EQ(token(), "");
  }
  {
    const HubEnvironment set({{"HF_HOME", home.path()}, {"HF_TOKEN", " hf_variable\n"}});
    EXPECT_EQ(token(), "hf_variable");
  }
  {
    const auto other = home.write("other", "hf_other");
    const HubEnvironment set({{"HF_HOME", home.path()}, {"HF_TOKEN_PATH", other}});
    EXPECT_EQ(token(), "hf_other");
  }
  // A line break would begin another header.
  const HubEnvironment set{{{"HF_TOKEN", "a\r\nX-Header: b"}}};
  expect_error(ErrorCode::kInvalidArgument, {"HF_TOKEN"}, [] { token(); });
}

TEST(Environment, OfflineAndTimeout) {
  {
    const HubEnvironment set{{{"HF_HUB_OFFLINE", "0"}}};
    EXPECT_FALSE(is_offline());
    EXPECT_EQ(download_timeout(), std::chrono::seconds(10));
  }
  {
    const HubEnvironment set({{"HF_HUB_OFFLINE", "True"}, {"HF_HUB_DOWNLOAD_TIMEOUT", "3"}});
    EXPECT_TRUE(is_offline());
    EXPECT_EQ(download_timeout(), std::chrono::seconds(3));
  }
  for (const char* text : {"0", "-1", "x", "3x", "99999999999"}) {
    const HubEnvironment set{{{"HF_HUB_DOWNLOAD_TIMEOUT", text}}};
    expect_error(ErrorCode::kInvalidArgument, {"HF_HUB_DOWNLOAD_TIMEOUT"}, [] {
      download_timeout();
    });
  }
}

TEST(Environment, ProxiesThatLibcurlLeavesAside) {
  {
    const HubEnvironment set{{{"HTTP_PROXY", "http://a"}}};
    EXPECT_EQ(http_proxy(), "http://a");
  }
  {
    const HubEnvironment set({{"HTTP_PROXY", "http://a"}, {"http_proxy", ""}});
    EXPECT_EQ(http_proxy(), "");
  }
  // The header `Proxy` of a client.
  const HubEnvironment set({{"HTTP_PROXY", "http://a"}, {"REQUEST_METHOD", "GET"}});
  EXPECT_EQ(http_proxy(), "");
}

}  // namespace
}  // namespace saker::hub
