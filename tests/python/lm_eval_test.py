# SPDX-License-Identifier: Apache-2.0
"""lm-evaluation-harness itself on local tasks: a YAML file and JSON lines for each kind of request."""

import json
import subprocess
import sys

import lm_eval
import yaml
from demo import DEMO, DemoTest
from lm_eval.tasks import TaskManager

import saker
from saker.lm_eval import SakerLM

CHOICES = [
    {"question": "What does a fox eat?", "choices": ["mice and berries", "stones and sand"], "answer": 0},
    {"question": "What does a cow eat?", "choices": ["iron", "grass"], "answer": 1},
    {"question": "Who are you?", "choices": ["I am the demo model of Saker", "I am a kettle"], "answer": 0},
]
TEXTS = [{"text": "Once upon a time there was a young fox named Ruby."}, {"text": "A fox eats mice and berries. " * 20}]
PROMPTS = [{"prompt": "Once upon a time", "expected": "there was a"}, {"prompt": "What does a fox", "expected": "nothing"}]
TASKS = {
    "choices": {
        "output_type": "multiple_choice",
        "doc_to_text": "{{question}}",
        "doc_to_choice": "{{choices}}",
        "doc_to_target": "answer",
        "metric_list": [{"metric": "acc"}],
    },
    "texts": {
        "output_type": "loglikelihood_rolling",
        "doc_to_text": "",
        "doc_to_target": "{{text}}",
        "metric_list": [{"metric": "word_perplexity"}, {"metric": "bits_per_byte"}],
    },
    "prompts": {
        "output_type": "generate_until",
        "doc_to_text": "{{prompt}}",
        "doc_to_target": " {{expected}}",
        "generation_kwargs": {"until": [" girl", "\n"], "max_gen_toks": 12, "do_sample": False},
        "metric_list": [{"metric": "exact_match"}],
    },
}


def write_tasks(folder):
    """The tasks as files that the harness finds in ``folder``."""
    folder.mkdir(exist_ok=True)
    for (name, task), rows in zip(TASKS.items(), (CHOICES, TEXTS, PROMPTS), strict=True):
        data = folder / f"{name}.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        files = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}}, "test_split": "test"}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({"task": name, **files, **task}))
    return folder


def evaluate(model, folder):
    """Results and samples of all tasks."""
    return lm_eval.simple_evaluate(
        model, tasks=[*TASKS], task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        bootstrap_iters=0,
    )  # fmt: skip


class LmEval(DemoTest):
    def test_tasks(self):
        found = evaluate(SakerLM(str(DEMO), batch_size=2), write_tasks(self.folder / "tasks"))
        base = self.model.base()
        self.assertEqual(found["results"]["choices"]["acc,none"], 1.0)
        for sample, row in zip(found["samples"]["choices"], CHOICES, strict=True):
            for (logprob, _), choice in zip(sample["filtered_resps"], row["choices"], strict=True):
                self.assertEqual(logprob, base.logprob_of(row["question"], f" {choice}"))
        for sample, row in zip(found["samples"]["texts"], TEXTS, strict=True):
            rest = base.rolling_logprob(row["text"]).total_logprob
            self.assertLess(sample["filtered_resps"][0], rest)  # The first token counts too, after end of sequence.
        for sample, row in zip(found["samples"]["prompts"], PROMPTS, strict=True):
            wanted = base.generate(row["prompt"], max_tokens=12, stop=[" girl", "\n"])
            self.assertEqual(sample["filtered_resps"][0], wanted.text)
        self.assertEqual(found["results"]["prompts"]["exact_match,none"], 0.5)

    def test_windows_do_not_change_what_fits(self):
        whole = SakerLM(str(DEMO))
        windows = SakerLM(str(DEMO), max_length=24)
        folder = write_tasks(self.folder / "tasks")
        short, long = ([each["filtered_resps"][0] for each in evaluate(model, folder)["samples"]["texts"]]
                       for model in (windows, whole))  # fmt: skip
        self.assertEqual(short[0], long[0])
        self.assertNotEqual(short[1], long[1])

    def test_windows_hold_what_the_harness_s_do(self):
        tokens = self.model.encode(TEXTS[1]["text"])[:30]
        windows = SakerLM(str(DEMO), max_length=10)
        (found,) = windows._loglikelihood_tokens([(("", ""), tokens[:-1], tokens[-1:])], disable_tqdm=True)
        request = saker.ScoreRequest(prompt_tokens=tokens[-11:-1], tokens=tokens[-1:])
        (wanted,) = self.model.score([request], views=["base"])
        self.assertEqual(found[0], wanted.views[0].sum)

    def test_views(self):
        folder = write_tasks(self.folder / "tasks")
        base, zero, ft = (
            evaluate(SakerLM(str(DEMO), **options), folder)["results"]["texts"]["bits_per_byte,none"]
            for options in ({}, {"adapter": str(self.adapter), "view": "0"}, {"adapter": str(self.adapter)})
        )
        self.assertEqual(base, zero)
        self.assertNotEqual(base, ft)

    def test_special_tokens_are_the_tokenizer_s(self):
        model = SakerLM(str(DEMO))
        eos = self.model.special_token("eos_token")
        self.assertEqual((model.eot_token_id, model.prefix_token_id), (eos, eos))

    def test_command_line(self):
        folder = write_tasks(self.folder / "tasks")
        done = subprocess.run(
            [sys.executable, "-m", "saker.lm_eval", "run", "--model", "saker", "--model_args", f"path={DEMO}",
             "--tasks", "choices", "--include_path", str(folder)],
            capture_output=True, text=True, cwd=self.folder,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertIn("choices", done.stdout)
