// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/format_table.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace saker::text {
namespace {

// {"name": "f", "arguments": {…}} between two markers.
CallFormat object_between(std::string open, std::string close) {
  return {.open = std::move(open), .close = std::move(close), .separator = "\n", .is_one = true};
}

// [{"name": "f", "arguments": {…}}, …] between two markers.
CallFormat list_between(std::string open, std::string close) {
  return {.open = std::move(open), .close = std::move(close), .separator = ", ", .is_list = true};
}

// [f(a=1), g()] between two markers.
CallFormat python_between(std::string open, std::string close) {
  CallFormat format = list_between(std::move(open), std::move(close));
  format.is_python = true;
  return format;
}

CallFormat with_keys(CallFormat format, std::string name, std::string arguments) {
  format.name_key = std::move(name);
  format.arguments_key = std::move(arguments);
  return format;
}

// <function=f><parameter=k>v</parameter></function>
CallFormat function_tags(std::string open, std::string close) {
  return {
      .shape = CallShape::kTagged,
      .open = std::move(open),
      .close = std::move(close),
      .separator = "\n",
      .is_one = true,
      .call_open = "<function=",
      .name_close = ">\n",
      .call_close = "</function>",
      .key_open = "<parameter=",
      .key_close = ">\n",
      .value_close = "\n</parameter>\n",
      .has_line_values = true,
  };
}

CallFormat seed_tags() {
  CallFormat format = function_tags("<seed:tool_call>\n", "\n</seed:tool_call>");
  format.is_one = false;
  return format;
}

// <tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>
CallFormat argument_tags(const std::string& suffix) {
  return {
      .shape = CallShape::kTagged,
      .separator = "\n",
      .call_open = "<tool_call" + suffix + ">",
      .name_close = "\n",
      .call_close = "</tool_call" + suffix + ">",
      .key_open = "<arg_key" + suffix + ">",
      .key_close = "</arg_key" + suffix + ">\n",
      .value_open = "<arg_value" + suffix + ">",
      .value_close = "</arg_value" + suffix + ">\n",
  };
}

// <invoke name="f"><parameter name="k">v</parameter></invoke>
CallFormat invoke_tags(
    std::string open, std::string close, const std::string& tag, const std::string& parameter
) {
  return {
      .shape = CallShape::kTagged,
      .open = std::move(open),
      .close = std::move(close),
      .separator = "\n",
      .call_open = "<" + tag + " name=\"",
      .name_close = "\">\n",
      .call_close = "</" + tag + ">",
      .key_open = "<" + parameter + " name=\"",
      .key_close = "\">",
      .value_close = "</" + parameter + ">\n",
  };
}

// <｜DSML｜invoke name="f"><｜DSML｜parameter name="k" string="true">v</｜DSML｜parameter>
CallFormat dsml_tags(const std::string& section) {
  CallFormat format = invoke_tags(
      "<｜DSML｜" + section + ">\n",
      "\n</｜DSML｜" + section + ">",
      "｜DSML｜invoke",
      "｜DSML｜parameter"
  );
  format.name_close = "\"";
  format.key_close = "\"";
  format.attributes_close = ">";
  format.text_attributes = " string=\"true\"";
  format.value_attributes = " string=\"false\"";
  return format;
}

CallFormat step3_tags() {
  CallFormat format = invoke_tags(
      "<｜tool_calls_begin｜>", "<｜tool_calls_end｜>", "steptml:invoke", "steptml:parameter"
  );
  format.call_open = "<｜tool_call_begin｜>function<｜tool_sep｜>" + format.call_open;
  format.call_close += "<｜tool_call_end｜>";
  return format;
}

CallFormat hunyuan3_tags(const std::string& suffix) {
  CallFormat format = argument_tags(suffix);
  format.open = "<tool_calls" + suffix + ">\n";
  format.close = "\n</tool_calls" + suffix + ">";
  format.name_close = "<tool_sep" + suffix + ">\n";
  return format;
}

CallFormat minimax_m3_tags() {
  const std::string mark = "]<]minimax[>[";
  return {
      .shape = CallShape::kTagged,
      .open = mark + "<tool_call>\n",
      .close = "\n" + mark + "</tool_call>",
      .separator = "\n",
      .call_open = mark + "<invoke name=\"",
      .name_close = "\">",
      .call_close = mark + "</invoke>",
      .key_open = mark + "<",
      .key_close = ">",
      .value_close = mark + "</{key}>",
      .has_nested_values = true,
  };
}

CallFormat kimi_k3_tags() {
  return {
      .shape = CallShape::kTagged,
      .open = "<|open|>tools<|sep|>",
      .close = "<|close|>tools<|sep|>",
      .call_open = "<|open|>call tool=\"",
      .name_close = "\"",
      .call_close = "<|close|>call<|sep|>",
      .attributes_close = "<|sep|>",
      .name_attributes = " index=\"1\"",
      .text_attributes = " type=\"string\"",
      .value_attributes = " type=\"{type}\"",
      .key_open = "<|open|>argument key=\"",
      .key_close = "\"",
      .value_close = "<|close|>argument<|sep|>",
  };
}

// The forms of DeepSeek V3 and R1, and of V3.1.
CallFormat deepseek_calls(std::string kind, std::string name_close, std::string call_close) {
  return {
      .shape = CallShape::kNamed,
      .open = "<｜tool▁calls▁begin｜>",
      .close = "<｜tool▁calls▁end｜>",
      .separator = std::string(kind.empty() ? "" : "\n"),
      .call_open = "<｜tool▁call▁begin｜>" + kind,
      .name_close = std::move(name_close),
      .call_close = std::move(call_close) + "<｜tool▁call▁end｜>",
  };
}

CallFormat kimi_k2_calls() {
  return {
      .shape = CallShape::kNamed,
      .open = "<|tool_calls_section_begin|>",
      .close = "<|tool_calls_section_end|>",
      .call_open = "<|tool_call_begin|>",
      .name_close = "<|tool_call_argument_begin|>",
      .call_close = "<|tool_call_end|>",
      .has_numbered_names = true,
  };
}

CallFormat named_calls(std::string open, std::string name_close, std::string close) {
  return {
      .shape = CallShape::kNamed,
      .call_open = std::move(open),
      .name_close = std::move(name_close),
      .call_close = std::move(close),
  };
}

CallFormat mistral_calls() {
  CallFormat format = named_calls("[TOOL_CALLS]", "[ARGS]", "");
  format.id_open = "[CALL_ID]";
  return format;
}

CallFormat gemma_calls(std::string open, std::string close, std::string quote) {
  CallFormat format = named_calls(std::move(open), "", std::move(close));
  format.quote = std::move(quote);
  return format;
}

// As above without the markers around all calls, which models leave out at times.
CallFormat without_section(CallFormat format) {
  format.open.clear();
  return format;
}

std::vector<OutputFormat> tagged_formats() {
  return {
      {.name = "kimi_k3",
       .reasoning = {{"<|open|>think<|sep|>", "<|close|>think<|sep|>"}},
       .content_open = "<|open|>response<|sep|>",
       .content_close = "<|close|>response<|sep|>",
       .calls = {kimi_k3_tags()}},
      {.name = "minimax_m3",
       .reasoning = {{"<mm:think>", "</mm:think>"}},
       .calls = {minimax_m3_tags()}},
      {.name = "minimax_m2",
       .calls = {invoke_tags(
           "<minimax:tool_call>\n", "\n</minimax:tool_call>", "invoke", "parameter"
       )}},
      {.name = "deepseek_v4", .calls = {dsml_tags("tool_calls")}},
      {.name = "deepseek_v41", .calls = {dsml_tags(" calls")}},
      {.name = "deepseek_v32", .calls = {dsml_tags("function_calls")}},
      {.name = "step3", .calls = {step3_tags()}},
      {.name = "hunyuan3", .calls = {hunyuan3_tags("")}},
      {.name = "hunyuan3_opensource",
       .reasoning = {{"<think:opensource>", "</think:opensource>"}},
       .calls = {hunyuan3_tags(":opensource")}},
      {.name = "seed_oss", .reasoning = {{"<seed:think>", "</seed:think>"}}, .calls = {seed_tags()}
      },
      {.name = "qwen3_coder",
       .calls =
           {function_tags("<tool_call>\n", "\n</tool_call>"),
            without_section(function_tags("", "\n</tool_call>"))}},
      {.name = "minicpm5", .calls = {invoke_tags("", "", "function", "param")}},
      {.name = "glm", .calls = {argument_tags("")}},
  };
}

std::vector<OutputFormat> named_formats() {
  const CallFormat deepseek3 = deepseek_calls("function<｜tool▁sep｜>", "\n```json\n", "\n```");
  const CallFormat deepseek31 = deepseek_calls("", "<｜tool▁sep｜>", "");
  return {
      {.name = "gpt_oss", .channels = ChannelUse::kHarmony},
      {.name = "deepseek_v3", .calls = {deepseek3, without_section(deepseek3)}},
      {.name = "deepseek_v31", .calls = {deepseek31, without_section(deepseek31)}},
      {.name = "kimi_k2", .calls = {kimi_k2_calls(), without_section(kimi_k2_calls())}},
      {.name = "mistral", .reasoning = {{"[THINK]", "[/THINK]"}}, .calls = {mistral_calls()}},
      {.name = "gemma4",
       .reasoning = {{"<|channel>thought", "<channel|>"}},
       .calls = {gemma_calls("<|tool_call>call:", "<tool_call|>", "<|\"|>")}},
      {.name = "functiongemma",
       .calls = {gemma_calls("<start_function_call>call:", "<end_function_call>", "<escape>")}},
      {.name = "functionary31", .calls = {named_calls("<function=", ">", "</function>")}},
      {.name = "functionary32", .content_open = ">>>all\n", .calls = {named_calls(">>>", "\n", "")}
      },
  };
}

std::vector<OutputFormat> object_formats() {
  CallFormat apertus = list_between("<|tools_prefix|>", "<|tools_suffix|>");
  apertus.name_is_key = true;
  const auto tool_name = [](CallFormat format) {
    return with_keys(std::move(format), "tool_name", "parameters");
  };
  const auto parameters = [](CallFormat format) {
    return with_keys(std::move(format), "name", "parameters");
  };
  CallFormat joined = parameters({});
  joined.separator = "; ";
  const CallFormat hermes = object_between("<tool_call>\n", "\n</tool_call>");
  return {
      {.name = "command_r7b",
       .reasoning = {{"<|START_THINKING|>", "<|END_THINKING|>"}},
       .content_open = "<|START_RESPONSE|>",
       .content_close = "<|END_RESPONSE|>",
       .calls =
           {tool_name(list_between("<|START_ACTION|>", "<|END_ACTION|>")),
            tool_name(list_between("<cofl:tool_calls>", "</cofl:tool_calls>"))}},
      {.name = "apertus",
       .reasoning = {{"<|inner_prefix|>", "<|inner_suffix|>"}},
       .calls = {std::move(apertus)}},
      {.name = "nemotron_v2", .calls = {list_between("<TOOLCALL>", "</TOOLCALL>")}},
      {.name = "lfm2", .calls = {python_between("<|tool_call_start|>", "<|tool_call_end|>")}},
      {.name = "olmo3", .calls = {python_between("<function_calls>", "</function_calls>")}},
      {.name = "longcat",
       .reasoning = {{"<longcat_think>", "</longcat_think>"}},
       .calls = {object_between("<longcat_tool_call>\n", "\n</longcat_tool_call>")}},
      {.name = "internlm",
       .calls = {parameters(object_between("<|action_start|><|plugin|>", "<|action_end|>"))}},
      {.name = "phi4_mini",
       .calls = {list_between("<|tool_call|>", "<|/tool_call|>"), list_between("functools", "")}},
      {.name = "granite3",
       .content_open = "<response>",
       .content_close = "</response>",
       .calls = {list_between("<|tool_call|>", ""), list_between("<tool_call>", "")}},
      {.name = "firefunction", .calls = {list_between("functools", "")}},
      {.name = "mistral_list", .calls = {list_between("[TOOL_CALLS]", "")}},
      {.name = "hunyuan",
       .content_open = "<answer>\n",
       .content_close = "\n</answer>",
       .calls = {list_between("<tool_calls>", "</tool_calls>")}},
      {.name = "ernie45",
       .content_open = "<response>\n",
       .content_close = "\n</response>",
       .calls = {hermes}},
      {.name = "hermes", .calls = {hermes}},
      {.name = "llama4",
       .calls = {python_between("", ""), python_between("<|python_start|>", "<|python_end|>")}},
      {.name = "xlam",
       .calls =
           {list_between("", ""),
            list_between("```json", "```"),
            list_between("[TOOL_CALLS]", ""),
            object_between("<tool_call>", "</tool_call>")}},
      {.name = "llama3", .calls = {joined, parameters(object_between("<|python_tag|>", ""))}},
      {.name = "jamba", .calls = {list_between("<tool_calls>", "</tool_calls>")}},
  };
}

}  // namespace

std::vector<ReasoningMarkers> all_reasoning_markers() {
  return {
      {"<think>", "</think>"},              // Qwen 3, DeepSeek, GLM and most others.
      {"[THINK]", "[/THINK]"},              // Mistral.
      {"<|channel>thought", "<channel|>"},  // Gemma 4.
      {"<seed:think>", "</seed:think>"},
      {"<mm:think>", "</mm:think>"},
      {"<thought>", "</thought>"},
      {"<thinking>", "</thinking>"},
      {"◁think▷", "◁/think▷"},
      {"<|START_THINKING|>", "<|END_THINKING|>"},
      {"<|inner_prefix|>", "<|inner_suffix|>"},
  };
}

std::vector<OutputFormat> make_format_table() {
  std::vector<OutputFormat> formats = tagged_formats();
  for (auto more : {named_formats(), object_formats()}) {
    std::ranges::move(more, std::back_inserter(formats));
  }
  return formats;
}

}  // namespace saker::text
