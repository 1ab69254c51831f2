// SPDX-License-Identifier: Apache-2.0
#include "saker/server/admin/openapi.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace saker::server {
namespace {

Json content(const std::string& type, Json schema) {
  return {{type, {{"schema", std::move(schema)}}}};
}

Json reference(const std::string& schema) {
  return {{"$ref", "#/components/schemas/" + schema}};
}

Json answers(const Json& route) {
  Json whole = content(route.value("answer", "application/json"), Json::object());
  if (route.value("streams", false)) {
    whole.update(content("text/event-stream", {{"type", "string"}}));
  }
  if (route.value("lines", false)) {
    whole.update(content("application/x-ndjson", {{"type", "string"}}));
  }
  return {
      {"200", {{"description", "The answer"}, {"content", std::move(whole)}}},
      {"default",
       {{"description", "An error"}, {"content", content("application/json", reference("Error"))}}},
  };
}

Json operation(const std::string& method, const std::string& path, const Json& route) {
  std::string id = method + path;
  std::ranges::replace_if(
      id,
      [](char c) { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9'); },
      '_'
  );
  Json json = {{"operationId", id}, {"responses", answers(route)}};
  if (route.empty()) {
    json["x-undocumented"] = true;
    return json;
  }
  json["summary"] = route["summary"];
  json["tags"] = Json::array({route["tag"]});
  if (route.value("public", false)) {
    json["security"] = Json::array();
  }
  if (route.contains("body")) {
    json["requestBody"] = {
        {"required", true},
        {"content", content("application/json", reference(route["body"].get<std::string>()))},
    };
  }
  if (path.find("{name}") != std::string::npos) {
    json["parameters"] = Json::array(
        {{{"name", "name"}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}}}
    );
  }
  return json;
}

// OpenAI's routes work without "/v1", too.
const Json* find_route(const Json& routes, const std::string& method, const std::string& path) {
  for (const std::string prefix : {"", "/v1"}) {
    if (const auto found = routes.find(fmt::format("{} {}{}", method, prefix, path));
        found != routes.end()) {
      return &*found;
    }
  }
  return nullptr;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

}  // namespace

Json openapi(const http::Router& router) {
  const Json described = parse_json(openapi_text(), "openapi.json");
  const Json& routes = described["routes"];
  std::set<std::string> unused;
  for (const auto& [name, _] : routes.items()) {
    unused.insert(name);
  }
  Json paths = Json::object();
  for (const auto& [method, pattern] : router.routes()) {
    const bool has_name = pattern.ends_with("/*");
    const std::string path = has_name ? pattern.substr(0, pattern.size() - 1) + "{name}" : pattern;
    unused.erase(fmt::format("{} {}", method, path));
    const Json* route = find_route(routes, method, path);
    paths[path][lower(method)] =
        operation(method, path, route == nullptr ? Json::object() : *route);
  }
  Json json = {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "Saker"},
        {"version", SAKER_VERSION},
        {"description", "Language models by the APIs of OpenAI, Anthropic and Ollama."}}},
      {"paths", std::move(paths)},
      {"components",
       {{"schemas", described["schemas"]},
        {"securitySchemes",
         {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}},
          {"key", {{"type", "apiKey"}, {"in", "header"}, {"name", "x-api-key"}}}}}}},
      {"security",
       Json::array({Json::object(), {{"bearer", Json::array()}}, {{"key", Json::array()}}})},
  };
  if (!unused.empty()) {
    json["x-no-routes"] = unused;
  }
  return json;
}

}  // namespace saker::server
