#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes GGUF files of tiny models of tests/golden by llama.cpp's own converter, without their tokenizers.

    python tools/make_gguf_model_goldens.py LLAMA_CPP [NAME ...] [--out tests/golden/gguf/models]

LLAMA_CPP is llama.cpp's source folder (the vendored one of llama-cpp-python 0.3.36 made those that are committed).
Needs: torch transformers==5.24.0 numpy
"""
import argparse
import json
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What the converter takes a checkpoint for, and fields of configurations that it needs and goldens lack.
CLASSES = {
    "afmoe": ("AfmoeForCausalLM", {}),
    "cohere2_moe": ("Cohere2MoeForCausalLM", {}),
    "falcon_h1_norm": ("FalconH1ForCausalLM", {}),
    "granitemoehybrid_moe": ("GraniteMoeHybridForCausalLM", {}),
    # The file has rope's base as alpha makes it.
    "hunyuan_v1_moe": ("HunYuanMoEV1ForCausalLM", dict(
        moe_topk=[2, 2], moe_intermediate_size=[48, 48], num_shared_expert=[1, 1],
        rope_parameters=dict(rope_type="default", rope_theta=1e4 * 100.0 ** (8 / 6)))),
    "qwen3_vl_moe": ("Qwen3VLMoeForConditionalGeneration", {}),
    "llama4_usual": ("Llama4ForConditionalGeneration", {}),
    "bailing_moe_v2": ("BailingMoeV2ForCausalLM", {}),
    "cohere2": ("Cohere2ForCausalLM", dict(rotary_pct=1.0)),
    "deepseek_v2": ("DeepseekV2ForCausalLM", {}),
    "deepseek_v3_single": ("DeepseekV3ForCausalLM", {}),
    "dots1": ("Dots1ForCausalLM", {}),
    "exaone4": ("Exaone4ForCausalLM", {}),
    "glm4_moe": ("Glm4MoeForCausalLM", dict(num_nextn_predict_layers=0)),
    "gemma4_moe_published": ("Gemma4ForConditionalGeneration", {}),
    "gpt_oss_mxfp4": ("GptOssForCausalLM", {}),
    "gpt_oss_published": ("GptOssForCausalLM", {}),
    "granite": ("GraniteForCausalLM", {}),
    "granitemoehybrid": ("GraniteMoeHybridForCausalLM", {}),
    "lfm2": ("Lfm2ForCausalLM", {}),
    "lfm2_moe": ("Lfm2MoeForCausalLM", {}),
    "kimi_linear": ("KimiLinearForCausalLM", {}),
    "granitemoe": ("GraniteMoeForCausalLM", {}),
    "ernie4_5_moe": ("Ernie4_5_MoeForCausalLM", {}),
    "mixtral": ("MixtralForCausalLM", {}),
    "mtp/glm4_moe": ("Glm4MoeForCausalLM", {}),
    "minimax_m2": ("MiniMaxM2ForCausalLM", {}),
    "ministral3": ("Ministral3ForCausalLM", {}),
    # With a type that transformers does not know, the converter takes no defaults, of which some are experts.
    "nemotron_h": ("NemotronHForCausalLM", dict(model_type="nemotron_h_dense")),
    "nemotron_h_moe": ("NemotronHForCausalLM", {}),
    "olmo3": ("Olmo3ForCausalLM", {}),
    "olmoe": ("OlmoeForCausalLM", {}),
    "phi3": ("Phi3ForCausalLM", {}),
    "qwen2_moe": ("Qwen2MoeForCausalLM", {}),
    "qwen3_5_moe_published": ("Qwen3_5MoeForCausalLM", {}),
    "qwen3_next_published": ("Qwen3NextForCausalLM", {}),
}


FUSED = ("cohere2_moe", "hunyuan_v1_moe")  # Goldens with fused experts, which the converter takes one by one.


def single_experts(source, target):
    """Writes fused experts as one tensor each."""
    from safetensors.torch import load_file, save_file
    result = {}
    for name, value in load_file(source).items():
        scope, found, part = name.rpartition(".experts.")
        for i, expert in enumerate(value) if found else []:
            parts = dict(zip(("gate_proj", "up_proj"), expert.chunk(2))) if part == "gate_up_proj" else {part: expert}
            result.update({f"{scope}.experts.{i}.{key}.weight": rows.contiguous() for key, rows in parts.items()})
        if not found:
            result[name] = value
    save_file(result, target)


def subclasses(base):
    for found in base.__subclasses__():
        yield found
        yield from subclasses(found)


def convert(name, out):
    import convert_hf_to_gguf  # noqa: F401 (it knows the classes' files)
    import gguf
    from conversion import base
    golden, (architecture, more) = ROOT / "tests" / "golden" / name, CLASSES[name]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        config = json.loads((golden / "config.json").read_text()) | more | {"architectures": [architecture]}
        (folder / "config.json").write_text(json.dumps(config))
        # Some classes count its tokens.
        tokens = {"vocab": {str(i): i for i in range(config["vocab_size"])}}
        (folder / "tokenizer.json").write_text(json.dumps({"model": tokens, "added_tokens": []}))
        if name in FUSED:
            single_experts(golden / "model.safetensors", folder / "model.safetensors")
        else:
            shutil.copy(golden / "model.safetensors", folder)
        model_class = convert_hf_to_gguf.get_model_class(architecture)
        for found in subclasses(base.ModelBase):  # Goldens have no tokenizers.
            if "set_vocab" in found.__dict__:
                found.set_vocab = lambda self: None
        model_class.no_mtp = not name.startswith("mtp/")  # Nor heads that draft tokens.
        model_class(folder, gguf.LlamaFileType.ALL_F32, out / f"{name.replace('/', '_')}.gguf").write()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llama_cpp", type=pathlib.Path, metavar="LLAMA_CPP")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CLASSES)}; default: all")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/golden/gguf/models")
    args = parser.parse_args()
    sys.path[:0] = [str(args.llama_cpp), str(args.llama_cpp / "gguf-py")]
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.names or CLASSES:
        convert(name, args.out)


if __name__ == "__main__":
    main()
