# SPDX-License-Identifier: Apache-2.0
"""lm-evaluation-harness over HTTP (`local-completions`): its log-likelihoods are those of `saker score`."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from lm_eval.api.instance import Instance
from lm_eval.models.openai_completions import LocalCompletionsAPI

PROGRAM = os.environ["SAKER_PROGRAM"]
DEMO = pathlib.Path(__file__).resolve().parents[2] / "models/demo"
ENVIRONMENT = {**os.environ, "SAKER_CONFIG": "", "HF_HUB_OFFLINE": "1"}
PAIRS = [("Once upon a time there was", " a fox."), ("The fox lived in", " the forest."), ("Rain", " falls")]


class LmEval(unittest.TestCase):
    def test_local_completions(self):
        server = subprocess.Popen([PROGRAM, "serve", DEMO, "--port", "0"], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
                                  cwd=tempfile.gettempdir())
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        address = next(found[0] for line in server.stderr if (found := re.search(r"http://127.0.0.1:\d+", line)))
        os.environ["OPENAI_API_KEY"] = "none"
        model = LocalCompletionsAPI(base_url=address + "/v1/completions", model="demo", tokenizer=str(DEMO), tokenizer_backend="huggingface",
                                    batch_size=2)
        requests = [Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=i) for i, pair in enumerate(PAIRS)]
        for (prompt, completion), (got, _) in zip(PAIRS, model.loglikelihood(requests, disable_tqdm=True), strict=True):
            done = subprocess.run([PROGRAM, "score", DEMO, "--prompt", prompt, "--completion", completion, "--json"], check=True,
                                  capture_output=True, env=ENVIRONMENT, cwd=tempfile.gettempdir())
            self.assertAlmostEqual(got, json.loads(done.stdout)["views"]["base"]["sum"], places=5)


if __name__ == "__main__":
    unittest.main()
