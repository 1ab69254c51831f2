// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/launch/agents.h"

#include "saker/base/json/json.h"
#include "saker/base/json/json_numbers.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace saker::cli {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

std::string openai_address(const LaunchServer& server) {
  return server.address + "/v1";
}

AgentSettings claude(const LaunchServer& server, const std::filesystem::path& /*folder*/) {
  Environment environment = {
      {"ANTHROPIC_BASE_URL", server.address},
      {"ANTHROPIC_AUTH_TOKEN", server.key},
      {"ANTHROPIC_API_KEY", ""},
      {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
  };
  for (const char* name :
       {"ANTHROPIC_MODEL",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL",
        "ANTHROPIC_DEFAULT_OPUS_MODEL"}) {
    environment.emplace_back(name, server.model);
  }
  return {.environment = std::move(environment)};
}

AgentSettings codex(const LaunchServer& server, const std::filesystem::path& /*folder*/) {
  AgentSettings settings;
  const auto set = [&](const std::string& key, const Json& value) {
    settings.args.insert(settings.args.end(), {"-c", key + "=" + write_json(value)});
  };
  set("model", server.model);
  set("model_provider", "saker");
  set("model_context_window", server.context);
  set("model_providers.saker.name", "Saker");
  set("model_providers.saker.base_url", openai_address(server));
  set("model_providers.saker.wire_api", "responses");
  set("model_providers.saker.env_key", "SAKER_API_KEY");
  settings.environment = {{"SAKER_API_KEY", server.key}};
  return settings;
}

AgentSettings opencode(const LaunchServer& server, const std::filesystem::path& /*folder*/) {
  const Json limit = {{"context", server.context}, {"output", server.context / 4}};
  const Json config = {
      {"model", "saker/" + server.model},
      {"small_model", "saker/" + server.model},
      {"provider",
       {{"saker",
         {{"npm", "@ai-sdk/openai-compatible"},
          {"name", "Saker"},
          {"options", {{"baseURL", openai_address(server)}, {"apiKey", server.key}}},
          {"models", {{server.model, {{"name", server.model}, {"limit", limit}}}}}}}}},
  };
  return {.environment = {{"OPENCODE_CONFIG_CONTENT", write_json(config)}}};
}

AgentSettings qwen(const LaunchServer& server, const std::filesystem::path& /*folder*/) {
  return {
      .args = {"--auth-type", "openai"},
      .environment =
          {{"OPENAI_BASE_URL", openai_address(server)},
           {"OPENAI_API_KEY", server.key},
           {"OPENAI_MODEL", server.model}},
  };
}

AgentSettings pi(const LaunchServer& server, const std::filesystem::path& folder) {
  const Json model = {
      {"id", server.model},
      {"contextWindow", server.context},
      {"maxTokens", server.context / 4},
  };
  const Json config = {
      {"providers",
       {{"saker",
         {{"baseUrl", openai_address(server)},
          {"api", "openai-completions"},
          {"apiKey", server.key},
          {"models", Json::array({model})}}}}},
  };
  return {
      .args = {"--provider", "saker", "--model", server.model},
      .environment = {{"PI_CODING_AGENT_DIR", folder.string()}},
      .files = {{folder / "models.json", write_json(config)}},
  };
}

AgentSettings aider(const LaunchServer& server, const std::filesystem::path& folder) {
  const std::string model = "openai/" + server.model;
  const Json facts = {
      {model,
       {{"max_input_tokens", server.context},
        {"max_output_tokens", server.context / 4},
        {"input_cost_per_token", 0},
        {"output_cost_per_token", 0},
        {"litellm_provider", "openai"},
        {"mode", "chat"}}},
  };
  const std::filesystem::path file = folder / "models.json";
  return {
      .args =
          {"--model", model, "--model-metadata-file", file.string(), "--no-show-model-warnings"},
      .environment = {{"OPENAI_API_BASE", openai_address(server)}, {"OPENAI_API_KEY", server.key}},
      .files = {{file, write_json(facts)}},
  };
}

struct Row {
  Agent agent;
  AgentSettings (*settings)(const LaunchServer& server, const std::filesystem::path& folder);
};

constexpr std::array kAgents = {
    Row{{"aider", "aider", "python3 -m pip install aider-chat"}, aider},
    Row{{"claude", "claude", "npm install -g @anthropic-ai/claude-code"}, claude},
    Row{{"codex", "codex", "npm install -g @openai/codex"}, codex},
    Row{{"opencode", "opencode", "npm install -g opencode-ai"}, opencode},
    Row{{"pi", "pi", "npm install -g @mariozechner/pi-coding-agent"}, pi},
    Row{{"qwen", "qwen", "npm install -g @qwen-code/qwen-code"}, qwen},
};

const Row& find_row(std::string_view name) {
  const auto* const found =
      std::ranges::find(kAgents, name, [](const Row& row) { return row.agent.name; });
  assert(found != kAgents.end());
  return *found;
}

}  // namespace

std::vector<std::string> agent_names() {
  std::vector<std::string> names;
  for (const Row& row : kAgents) {
    names.emplace_back(row.agent.name);
  }
  return names;
}

const Agent& find_agent(std::string_view name) {
  return find_row(name).agent;
}

AgentSettings agent_settings(
    const Agent& agent, const LaunchServer& server, const std::filesystem::path& folder
) {
  return find_row(agent.name).settings(server, folder);
}

}  // namespace saker::cli
