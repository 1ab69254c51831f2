// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/io/result_json.h"

#include "saker/base/json/json_numbers.h"

#include <algorithm>
#include <cstddef>

namespace saker::cli {

Json spread_json(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {{"min", values.front()}, {"median", median}, {"max", values.back()}};
}

std::string dump_line(const Json& json) {
  return write_json(json) + "\n";
}

}  // namespace saker::cli
