// SPDX-License-Identifier: Apache-2.0
// Any bytes as what a hub answers: the first line as the address that it sends us to, and as a name
// that somebody copied; the rest as a list of files. Results that keep their promises, or typed
// errors.
#include "saker/base/error.h"
#include "saker/hub/digest.h"
#include "saker/hub/gguf_choice.h"
#include "saker/hub/http/web_address.h"
#include "saker/hub/model_name.h"
#include "saker/hub/remote_files.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

void expect(bool ok) {
  if (!ok) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace hub = saker::hub;
  const std::string_view answer(reinterpret_cast<const char*>(data), size);
  const std::string_view location = answer.substr(0, answer.find('\n'));
  const auto address = hub::resolve_location("https://hub.example/api/models", location);
  expect(!address || hub::origin_of(*address).has_value());
  if (const auto name = hub::parse_model_name(location)) {
    expect(hub::parse_model_name(hub::to_string(*name)) == name);
    expect(name->file.empty() || hub::is_file_path(name->file));
    expect(name->revision.empty() || hub::is_revision(name->revision));
  }
  try {
    std::vector<std::string> paths;
    const auto list = answer.substr(std::min(size, location.size() + 1));
    for (const hub::RemoteFile& file : hub::parse_file_list(list, "fuzz")) {
      expect(hub::is_file_path(file.path) && hub::is_digest(file.digest));
      paths.push_back(file.path);
    }
    const auto models = hub::gguf_models(paths);
    for (const hub::GgufModel& model : models) {
      const std::string label = hub::gguf_label(model, models);
      expect(hub::choose_gguf(models, label, "fuzz").path == model.path);
    }
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
