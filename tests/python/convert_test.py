# SPDX-License-Identifier: Apache-2.0
"""Models converted from Python: the files of the program, and what ends a conversion."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from demo import DEMO

import saker


class Convert(unittest.TestCase):
    """The bundled model has 4 bits; ``floats`` is the same in float32."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.floats = pathlib.Path(folder.name) / "floats"
        cls.report = saker.convert(DEMO, cls.floats, dequantize=True, dtype="float32")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.target = pathlib.Path(folder.name) / "model"

    def test_a_quantized_model_answers(self):
        seen = []
        report = saker.convert(self.floats, self.target, bits=8, group_size=32, rules=["*.down_proj=4:32"], on_progress=lambda *now: seen.append(now))
        self.assertGreater(report.quantized, 2)
        self.assertEqual(seen[-1][0], seen[-1][1])
        quantization = json.loads((self.target / "config.json").read_text())["quantization"]
        self.assertEqual((quantization["bits"], quantization["group_size"]), (8, 32))
        with saker.load(self.target) as model, saker.load(self.floats) as original:
            near = original.logprob_of("Once upon", " a time")
            self.assertAlmostEqual(model.logprob_of("Once upon", " a time"), near, delta=1.0)

    def test_floats(self):
        self.assertGreater(self.report.dequantized, 2)
        self.assertNotIn("quantization", json.loads((self.floats / "config.json").read_text()))

    def test_what_cannot_be_asked(self):
        for options, expected in (
            ({"bits": 7}, "7"),
            ({"dtype": "int8"}, "dtype: got 'int8', expected float32, float16 or bfloat16"),
            ({"bits": 4, "dequantize": True}, "exclude"),
            ({"mode": "q4_k"}, "q4_k"),
        ):
            with self.assertRaisesRegex(saker.InvalidArgumentError, expected):
                saker.convert(self.floats, self.target, **options)
        with self.assertRaises(FileNotFoundError):
            saker.convert(self.target, self.target.with_name("other"))
        # Not the file of the name before the zero.
        with self.assertRaises(saker.Error):
            saker.convert(f"{self.floats / 'model.safetensors'}\0", self.target)
        self.assertFalse(self.target.exists())

    def test_what_progress_raises_ends_it(self):
        def stop(done, total):
            raise OverflowError("enough")

        with self.assertRaisesRegex(OverflowError, "enough"):
            saker.convert(self.floats, self.target, bits=4, on_progress=stop)
        self.assertEqual(os.listdir(self.target.parent), [])

    def test_ctrl_c_ends_it(self):
        script = (
            "import saker, sys, time\n"
            "def slow(*_): print('busy', flush=True); time.sleep(0.1)\n"
            f"saker.convert({str(self.floats)!r}, {str(self.target)!r}, bits=4, on_progress=slow)"
        )
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "busy\n")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertIn("KeyboardInterrupt", errors)
        self.assertFalse(self.target.exists())


if __name__ == "__main__":
    unittest.main()
