// SPDX-License-Identifier: Apache-2.0
#pragma once

// The findings of `doctor`, in sections. Text and JSON are made from the same rows.

#include "saker/base/json/json.h"

#include <string>
#include <vector>

namespace saker::cli {

struct DoctorRow {
  std::string name;  // "hub cache"; in JSON "hub_cache".
  std::string text;  // For people.
  Json value;        // For programs.
};

struct DoctorSection {
  std::string name;
  std::vector<DoctorRow> rows;
};

// Without `offline` the hub is asked, for five seconds at most. Secrets are left out. Settings that
// can't be read become rows that say why.
std::vector<DoctorSection> check_up(bool offline);

// A line per row, of at most 100 columns where values allow it.
std::string doctor_text(const std::vector<DoctorSection>& sections);

Json doctor_json(const std::vector<DoctorSection>& sections);

}  // namespace saker::cli
