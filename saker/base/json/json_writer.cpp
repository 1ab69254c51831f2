// SPDX-License-Identifier: Apache-2.0
#include "saker/base/json/json_numbers.h"

#include <cmath>
#include <string>

namespace saker {
namespace {

class Writer {
 public:
  explicit Writer(std::optional<int> indent) : indent_(indent) {}

  std::string take() { return std::move(out_); }

  void write(const Json& value, int depth) {
    if (value.is_structured() && !value.empty()) {
      write_items(value, depth + 1);
    } else if (const auto digits = json_digits(value)) {
      out_ += *digits;
    } else if (value.is_number_float() && !std::isfinite(value.get<double>())) {
      const auto number = value.get<double>();
      out_ += std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
    } else {
      out_ += value.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
  }

 private:
  // Recurses no deeper than parsed values are nested.
  void write_items(const Json& value, int depth) {
    out_ += value.is_object() ? '{' : '[';
    bool is_first = true;
    for (const auto& [key, item] : value.items()) {
      out_ += is_first ? "" : ",";
      is_first = false;
      new_line(depth);
      if (value.is_object()) {
        write(Json(key), depth);
        out_ += indent_ ? ": " : ":";
      }
      write(item, depth);
    }
    new_line(depth - 1);
    out_ += value.is_object() ? '}' : ']';
  }

  void new_line(int depth) {
    if (indent_) {
      out_ += '\n';
      out_.append(static_cast<std::size_t>(depth * *indent_), ' ');
    }
  }

  std::optional<int> indent_;
  std::string out_;
};

}  // namespace

std::string write_json(const Json& value, std::optional<int> indent) {
  Writer writer(indent);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace saker
