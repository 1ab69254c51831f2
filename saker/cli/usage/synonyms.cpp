// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/synonyms.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace saker::cli {
namespace {

struct Synonym {
  std::string_view typed;
  std::string_view meant;
};

// A name may appear twice: the first entry whose option the command has counts.
constexpr Synonym kOptions[] = {
    {"-n", "--max-tokens"},
    {"--predict", "--max-tokens"},
    {"--n-predict", "--max-tokens"},
    {"--num-predict", "--max-tokens"},
    {"--max-new-tokens", "--max-tokens"},
    {"-t", "--threads"},
    {"-s", "--seed"},
    {"-j", "--json"},
    {"-y", "--yes"},
    {"-b", "--batch"},
    {"--batch-size", "--batch"},
    {"--repeat-penalty", "--repetition-penalty"},
    {"--repeat-last-n", "--repetition-context-size"},
    {"-p", "--text"},
    {"--prompt", "--text"},
    {"--typical", "--typical-p"},
    {"--top-nsigma", "--top-n-sigma"},
    {"--dynatemp-exp", "--dynatemp-exponent"},
    {"--dry-penalty-last-n", "--dry-context-size"},
    {"-sys", "--system"},
    {"--system-prompt", "--system"},
    {"--lora", "--adapter"},
    {"--adapter-path", "--adapter"},
    {"-md", "--draft"},
    {"--model-draft", "--draft"},
    {"--draft-model", "--draft"},
    {"--draft-max", "--draft-depth"},
    {"--num-draft-tokens", "--draft-depth"},
    {"--prompt-cache-file", "--cache-in"},
    {"--chat-template-config", "--template-kwargs"},
    {"-c", "--context"},
    {"--ctx-size", "--context"},
    {"--sequence-length", "--context"},
    {"--n-prompt", "-p"},
    {"--prompt-tokens", "-p"},
    {"--n-gen", "-n"},
    {"--generation-tokens", "-n"},
    {"-g", "-n"},
    {"--num-trials", "--repetitions"},
    {"-o", "--format"},
    {"-hf", kModelArgument},
    {"--hf-repo", kModelArgument},
    {"--hf-path", kModelArgument},
    {"-m", kModelArgument},
    {"--model", kModelArgument},
    {"--mlx-path", kOutputArgument},
    {"--q-bits", "--bits"},
    {"--q-group-size", "--group-size"},
    {"--q-mode", "--mode"},
    {"--quant-predicate", "--recipe"},
    {"-d", "--dequantize"},
};

constexpr Synonym kOptionAdvice[] = {
    {"-c", "a model's whole context is used; --max-kv-size N bounds its cache"},
    {"--context", "a model's whole context is used; --max-kv-size N bounds its cache"},
    {"--ctx-size", "a model's whole context is used; --max-kv-size N bounds its cache"},
    {"--num-ctx", "a model's whole context is used; --max-kv-size N bounds its cache"},
    {"-ngl", "--device gpu runs all layers on the GPU"},
    {"--gpu-layers", "--device gpu runs all layers on the GPU"},
    {"--n-gpu-layers", "--device gpu runs all layers on the GPU"},
    {"-i", "saker run chats on a terminal"},
    {"-cnv", "saker run chats on a terminal"},
    {"--interactive", "saker run chats on a terminal"},
    {"--verbose", "/set verbose in a chat, and saker generate -v, show tokens and speed"},
    {"--image", "models see texts only"},
    {"--stream", "text comes as it is made, without an option"},
    {"-fa", "attention needs no switch"},
    {"--flash-attn", "attention needs no switch"},
    {"--keepalive", "nothing is kept in memory after the command"},
    {"--upload-repo", "the folder that was written can be uploaded with Hugging Face's own tools"},
    {"--trust-remote-code", "code of a model is never run, so that nothing has to be trusted"},
};

struct OtherCommand {
  std::string_view typed;
  CommandAdvice advice;
};

constexpr OtherCommand kCommands[] = {
    {"server", {"serve", ""}},
    {"ps", {"list", "no model stays in memory between commands"}},
    {"stop", {"", "no model stays in memory between commands"}},
    {"models", {"list", ""}},
    {"download", {"pull", ""}},
    {"push", {"", "models are uploaded with Hugging Face's own tools"}},
    {"cp", {"create", ""}},
    {"remove", {"rm", ""}},
    {"delete", {"rm", ""}},
    {"info", {"inspect", ""}},
    {"quantize", {"convert", ""}},
    {"fuse", {"convert", "convert MODEL DST --adapter DIR --fuse"}},
    {"benchmark", {"bench", ""}},
    {"ppl", {"perplexity", ""}},
    {"eval", {"perplexity", ""}},
    {"evaluate", {"perplexity", ""}},
    {"encode", {"tokenize", ""}},
    {"decode", {"detokenize", ""}},
    {"ask", {"run", ""}},
    {"complete", {"generate", ""}},
};

bool has(const CLI::App& command, std::string_view meant) {
  if (meant == kModelArgument) {
    return command.get_option_no_throw("MODEL") != nullptr ||
           command.get_option_no_throw("PATH") != nullptr ||
           command.get_option_no_throw("paths") != nullptr;
  }
  if (meant == kOutputArgument) {
    return command.get_option_no_throw("paths") != nullptr;
  }
  return command.get_option_no_throw(std::string(meant)) != nullptr;
}

}  // namespace

std::string option_meant(const CLI::App& command, std::string_view typed) {
  std::string dashed(typed);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  if (dashed != typed && has(command, dashed)) {
    return dashed;
  }
  for (const Synonym& synonym : kOptions) {
    if (synonym.typed == dashed && has(command, synonym.meant)) {
      return std::string(synonym.meant);
    }
  }
  return {};
}

std::string_view advice_on_option(std::string_view typed) {
  std::string dashed(typed);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  const auto* const found = std::ranges::find(kOptionAdvice, dashed, &Synonym::typed);
  return found == std::end(kOptionAdvice) ? std::string_view() : found->meant;
}

CommandAdvice advice_on_command(std::string_view typed) {
  const auto* const found = std::ranges::find(kCommands, typed, &OtherCommand::typed);
  return found == std::end(kCommands) ? CommandAdvice() : found->advice;
}

}  // namespace saker::cli
