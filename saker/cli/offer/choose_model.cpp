// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/offer/choose_model.h"

#include "saker/base/error.h"
#include "saker/base/memory.h"
#include "saker/cli/hub/size_text.h"
#include "saker/cli/io/output.h"
#include "saker/cli/offer/offered_models.h"
#include "saker/hub/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace saker::cli {
namespace {

// More of this machine's models are left to `saker list`.
constexpr std::size_t kMostShown = 15;

void show(const std::vector<OfferedModel>& models, std::size_t first, std::size_t width) {
  for (std::size_t i = 0; i < models.size(); ++i) {
    print_error(fmt::format(
        "{:>4}  {:<{}}  {:>8}  {}\n",
        first + i,
        models[i].model,
        width,
        size_text(models[i].bytes),
        models[i].source
    ));
  }
}

std::size_t widest(const std::vector<OfferedModel>& models) {
  std::size_t width = 0;
  for (const OfferedModel& model : models) {
    width = std::max(width, model.model.size());
  }
  return width;
}

std::string trimmed(std::string text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  text.erase(std::ranges::find_if_not(text.rbegin(), text.rend(), is_space).base(), text.end());
  text.erase(text.begin(), std::ranges::find_if_not(text, is_space));
  return text;
}

// The chosen number; 0 if the text is none.
std::size_t number_in(std::string_view text) {
  std::size_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failed == std::errc() && end == text.data() + text.size() ? number : 0;
}

}  // namespace

std::string choose_model() {
  std::vector<OfferedModel> here = models_here();
  const std::size_t memory = usable_memory_bytes();
  const std::vector<OfferedModel> others =
      hub::is_offline() ? std::vector<OfferedModel>() : models_to_fetch(memory);
  const std::size_t found = here.size();
  here.resize(std::min(found, kMostShown));
  const std::size_t width = std::max(widest(here), widest(others));
  if (!here.empty()) {
    print_error("On this machine:\n");
    show(here, 1, width);
  }
  if (found > here.size()) {
    print_error(fmt::format("      and {} more: saker list\n", found - here.size()));
  }
  if (!others.empty()) {
    print_error(fmt::format("To fetch, with room in the memory of {}:\n", size_text(memory)));
    show(others, here.size() + 1, width);
  }
  while (true) {
    print_error("A number or a name [the bundled demo, a toy]: ");
    std::string line;
    if (!std::getline(std::cin, line)) {
      print_error("\n");
      throw Error(ErrorCode::kCancelled, "no model was chosen");
    }
    line = trimmed(std::move(line));
    const std::size_t number = number_in(line);
    if (number == 0 && line != "0") {
      return line;
    }
    if (number >= 1 && number <= here.size() + others.size()) {
      const std::size_t at = number - 1;
      return at < here.size() ? here[at].model : others[at - here.size()].model;
    }
    print_error(fmt::format("{} is none of them\n", line));
  }
}

}  // namespace saker::cli
