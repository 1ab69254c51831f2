# SPDX-License-Identifier: Apache-2.0
"""`saker score` with adapters: views, differences, the page."""
import html
import html.parser
import json
import math
import random
import re
import struct
import time
import unittest

from saker import DEMO, SakerTest

TEXT = "Saker is a <b>runtime</b> & more.\nIt runs \"models\" \u4e16\U0001f600."


def write_lora(folder, seed, layers):
    """An mlx-lm adapter of rank 2 for the attention's output projections of these layers."""
    folder.mkdir()
    config = json.loads((DEMO / "config.json").read_text())
    inputs, outputs = config["num_attention_heads"] * config["head_dim"], config["hidden_size"]
    numbers = random.Random(seed)
    header, data = {}, b""
    for layer in layers:
        for name, shape in (("lora_a", [inputs, 2]), ("lora_b", [2, outputs])):
            values = [numbers.gauss(0, 0.3) for _ in range(math.prod(shape))]
            blob = struct.pack(f"<{len(values)}f", *values)
            header[f"model.layers.{layer}.self_attn.o_proj.{name}"] = {
                "dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(blob)]}
            data += blob
    text = json.dumps(header).encode()
    (folder / "adapters.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "adapter_config.json").write_text(json.dumps({
        "fine_tune_type": "lora", "num_layers": config["num_hidden_layers"],
        "lora_parameters": {"rank": 2, "scale": 2.0, "dropout": 0.0, "keys": ["self_attn.o_proj"]}}))
    return folder


class Page(html.parser.HTMLParser):
    """The text of each view's block, and the spans with a delta."""

    def __init__(self):
        super().__init__()
        self.blocks, self.deltas, self.tags, self.inside, self.mark = [], 0, set(), False, False

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.add(tag)
        self.mark = values.get("class") == "mark"
        if values.get("class") == "text":
            self.inside = True
            self.blocks.append("")
        self.deltas += "title" in values

    def handle_endtag(self, tag):
        self.mark = False
        if tag == "div":
            self.inside = False

    def handle_data(self, data):
        if self.inside and not self.mark:
            self.blocks[-1] += data


class Views(SakerTest):
    def setUp(self):
        super().setUp()
        config = json.loads((DEMO / "config.json").read_text())
        self.last = config["num_hidden_layers"] - 1
        self.adapter = write_lora(self.folder / "law", 1, [0, self.last])
        self.top = write_lora(self.folder / "top", 2, [self.last])

    def test_base_and_fine_tune_in_one_pass(self):
        base = self.json("score", DEMO, "--text", TEXT, "--json")["views"]["base"]
        both = self.json("score", DEMO, "--text", TEXT, "--adapter", self.adapter, "--json")["views"]
        self.assertEqual(list(both), ["base", "ft"])
        self.assertEqual(both["base"], base)
        self.assertNotEqual(both["ft"]["sum"], base["sum"])
        alone = self.json("score", DEMO, "--text", TEXT, "--adapter", self.adapter, "--views", "ft", "--json")
        self.assertEqual(alone["views"], {"ft": both["ft"]})

    def test_every_view_has_the_bits_of_its_run_alone(self):
        adapters = ["--adapter", f"law={self.adapter}", "--adapter", f"top={self.top}"]
        keys = ["base", "ft", "0", "0.5", "law@-0.25", "top", "top@0.5", "null:7", "null:7:0.1:2", "null:8"]
        views = self.json("score", DEMO, "--text", TEXT, *adapters, "--views", ",".join(keys), "--json")["views"]
        self.assertEqual(list(views), keys)
        for key in keys:
            alone = self.json("score", DEMO, "--text", TEXT, *adapters, f"--views={key}", "--json")
            self.assertEqual(alone["views"][key], views[key], key)
        self.assertEqual(views["0"], views["base"])
        self.assertEqual(len({views[key]["sum"] for key in keys}), len(keys) - 1)

    def test_rows_below_the_first_changed_layer_are_shared(self):
        adapters = ["--adapter", self.top]
        views = self.json("score", DEMO, "--text", TEXT, *adapters, "--views", "base,ft,0.5", "--json")["views"]
        for key in views:
            alone = self.json("score", DEMO, "--text", TEXT, *adapters, "--views", key, "--json")["views"]
            self.assertEqual(alone[key], views[key])

    def test_difference(self):
        got = self.json(
            "score", DEMO, "--text", TEXT, "--adapter", self.adapter, "--diff", "--json",
            "--views", "base,0.5,ft,null:1,null:2,null:3")
        self.assertEqual(got["diff"]["reference"], "base")
        tuned = got["diff"]["views"]["ft"]
        base, ft = (got["views"][key]["logprobs"] for key in ("base", "ft"))
        self.assertIsNone(tuned["deltas"][0])
        for delta, a, b in list(zip(tuned["deltas"], base, ft))[1:]:
            self.assertAlmostEqual(delta, b - a, places=12)
        self.assertLessEqual(tuned["mean_interval"][0], tuned["mean"])
        self.assertGreaterEqual(tuned["mean_interval"][1], tuned["mean"])
        self.assertTrue(0 <= tuned["js"] <= math.log(2))
        self.assertTrue(math.isfinite(tuned["z"]))
        self.assertIsNone(got["diff"]["views"]["null:1"]["z"])
        self.assertTrue(0 <= got["diff"]["ablation"]["linearity"] <= 1)

    def logits_of(self, file):
        """Rows by tensor of a safetensors file, and the token ids."""
        data = file.read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        found = {}
        for name, entry in json.loads(data[8 : 8 + size]).items():
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            numbers = struct.unpack(f"<{(end - begin) // 4}{'i' if entry['dtype'] == 'I32' else 'f'}", data[begin:end])
            columns = entry["shape"][-1] if len(entry["shape"]) > 1 else 1
            found[name] = numbers if columns == 1 else [numbers[i : i + columns] for i in range(0, len(numbers), columns)]
        return found

    def expect_logprobs(self, rows, tokens, logprobs):
        self.assertEqual(len(rows), len(tokens))
        for row, token, logprob in zip(rows, tokens[1:], logprobs[1:]):
            top = max(row)
            total = top + math.log(math.fsum(math.exp(x - top) for x in row))
            self.assertAlmostEqual(row[token] - total, logprob, places=9)

    def test_logits(self):
        file = self.folder / "rows.safetensors"
        scored = self.json("score", DEMO, "--text", "hello you", "--logits", file, "--json")
        self.assertEqual(scored, self.json("score", DEMO, "--text", "hello you", "--json"))
        found = self.logits_of(file)
        self.assertEqual(sorted(found), ["logits", "tokens"])
        self.assertEqual(list(found["tokens"]), scored["tokens"])
        self.expect_logprobs(found["logits"], scored["tokens"], scored["views"]["base"]["logprobs"])
        npy = self.folder / "rows.npy"
        self.ok("score", DEMO, "--text", "hello you", "--top-k", "0", "--logits", npy)
        data = npy.read_bytes()
        shape = (len(found["logits"]), len(found["logits"][0]))
        self.assertTrue(data.startswith(b"\x93NUMPY\x01\x00"))
        self.assertIn(f"'descr': '<f4', 'fortran_order': False, 'shape': {shape}".encode(), data[:128])
        self.assertEqual(data[-shape[0] * shape[1] * 4 :], b"".join(struct.pack(f"<{shape[1]}f", *row) for row in found["logits"]))
        self.assertEqual((len(data) - shape[0] * shape[1] * 4) % 64, 0)

    def test_logits_of_views(self):
        file = self.folder / "rows.safetensors"
        views = self.json("score", DEMO, "--text", "hello you", "--adapter", self.adapter, "--views", "base,ft,0.5",
                          "--logits", file, "--json")
        found = self.logits_of(file)
        self.assertEqual(sorted(found), ["logits.0.5", "logits.base", "logits.ft", "tokens"])
        for key, view in views["views"].items():
            self.expect_logprobs(found[f"logits.{key}"], views["tokens"], view["logprobs"])

    def test_logits_go_to_files_of_known_kinds(self):
        self.fails("score", DEMO, "--text", "a b", "--logits", self.folder / "rows.bin", says=".safetensors or .npy")
        self.fails("score", DEMO, "--text", "a b", "--adapter", self.adapter, "--logits", self.folder / "rows.npy", says="2 views")
        self.fails("score", DEMO, "--text", "a b", "--logits", self.folder / "none" / "rows.npy", says="cannot be written")
        self.fails("score", DEMO, "-f", "x.jsonl", "--logits", self.folder / "rows.npy", says="--logits", code=2)
        self.assertEqual([path for path in self.folder.iterdir() if path.is_file()], [])

    def test_table(self):
        text = self.ok("score", DEMO, "--text", "hello you", "--adapter", self.adapter, "--diff").decode()
        lines = text.splitlines()
        self.assertEqual(lines[0].split(), ["base", "ft", "token"])
        self.assertIn("ft - base: sum", lines[-1])

    def test_page(self):
        page = self.folder / "page.html"
        self.ok("score", DEMO, "--text", TEXT, "--adapter", self.adapter, "--html", page)
        content = page.read_text(encoding="utf-8")
        self.assertNotIn("<b>runtime", content)
        self.assertNotIn("http", content)
        parsed = Page()
        parsed.feed(content)
        self.assertEqual(len(parsed.blocks), 1)
        self.assertEqual(parsed.blocks[0], TEXT)
        self.assertNotIn("script", parsed.tags)
        count = len(self.json("tokenize", DEMO, "-t", TEXT, "--json")["tokens"])
        self.assertEqual(parsed.deltas, count - 1)

    def test_page_says_what_it_is_about(self):
        page = self.folder / "page.html"
        self.ok("score", DEMO, "--text", "hello you all", "--adapter", self.adapter, "--views", "base,0.5,ft", "--top-k", "5", "--html", page)
        content = page.read_text(encoding="utf-8")
        for fact in (str(DEMO), str(self.adapter), "base, 0.5, ft", "top-k 5", time.strftime("%Y-%m-%d", time.gmtime())):
            self.assertIn(html.escape(fact), content)
        self.assertIn("<polyline", content)  # The curve over strengths.
        self.assertIn("<details><summary>Numbers of each token", content)

    def test_page_of_many_texts(self):
        records = self.write("r.jsonl", '{"id": "first <one>", "text": "hello you"}\n{"id": 2, "text": 7}\n{"text": "another one"}\n')
        page = self.folder / "page.html"
        self.fails("score", DEMO, "-f", records, "-o", self.folder / "out", "--adapter", self.adapter, "--html", page, says="1 records failed")
        content = page.read_text(encoding="utf-8")
        for number, title in enumerate(("first &lt;one&gt;", "2", "line 3"), 1):
            self.assertIn(f'<li><a href="#text{number}">{title}</a>', content)
            self.assertIn(f'<section id="text{number}"><h2>{title}</h2>', content)
        self.assertIn("expected a text", content)

    def test_page_shows_what_cannot_be_seen(self):
        page = self.folder / "page.html"
        self.ok("score", DEMO, "--text", "a\x01b\rc\x1b[31m\n<|endoftext|>d", "--adapter", self.adapter,
                "--views", "base,ft,null:1", "--html", page)
        content = page.read_bytes().decode()
        self.assertFalse({*"\x01\r\x1b"} & {*content})
        for picture in "\u2401\u240d\u241b\u21b5":
            self.assertIn(f'<span class="mark">{picture}</span>', content)
        self.assertEqual(content.count('class="special"'), 2)
        self.assertIn("&lt;|endoftext|&gt;</span>", content)
        # One scale for all views: noise is pale beside the fine-tune.
        strengths = [max(map(float, re.findall(r"rgba\(var\(--\w+\),([\d.]+)\)", block)))
                     for block in content.split("<h2>")[1:]]
        self.assertEqual(strengths[0], 0.75)
        self.assertLess(strengths[1], 0.5)

    def test_records_share_passes(self):
        lines = [{"id": i, "text": f"{TEXT} {i}"} for i in range(5)]
        path = self.write("r.jsonl", "\n".join(map(json.dumps, lines)))
        got = self.ok("score", DEMO, "-f", path, "--adapter", self.adapter, "--diff")
        self.assertEqual(got, self.ok("score", DEMO, "-f", path, "--adapter", self.adapter, "--diff", "--batch", "1"))
        self.assertEqual(set(json.loads(got.splitlines()[0])), {"id", "tokens", "views", "diff"})

    def test_resume_refuses_the_output_of_other_options(self):
        path = self.write("r.jsonl", '{"id": 1, "text": "hello you"}\n{"id": 2, "text": ""}\n{"id": 3, "tokens": [5, 6]}\n')
        resume = ["score", DEMO, "-f", path, "-o", self.folder / "out.jsonl", "--resume"]
        adapter = ["--adapter", self.adapter]
        options = [*adapter, "--diff", "--top-k", "2"]
        self.ok(*resume, *options)
        output = self.folder / "out.jsonl"
        whole = output.read_bytes()
        lines = whole.splitlines(keepends=True)
        for part in (lines[0], lines[0] + lines[1], lines[0] + b'{"id":2,"error":{"code":"x","message":"y","line":2}}\n'):
            for other in (
                [*adapter, "--top-k", "2"], ["--top-k", "2"], [*options, "--views", "base,0.5"],
                [*adapter, "--diff", "--top-k", "0"], [*adapter, "--diff", "--top-k", "3"]):
                output.write_bytes(part)
                self.fails(*resume, *other, says="other options")
                self.assertEqual(output.read_bytes(), part)
            if b"error" in part:
                self.fails(*resume, *options, says="1 records failed")
            else:
                self.ok(*resume, *options)
            self.assertEqual(output.read_bytes(), part + b"".join(lines[part.count(b"\n"):]))

    def test_preflight(self):
        views = ["--adapter", self.adapter, "--views", "base,ft,null:1"]
        self.assertEqual(self.json("score", DEMO, "--preflight", *views, "--json"), {"ok": True})
        self.assertIn(b"finite", self.ok("score", DEMO, "--preflight"))
        plain, checked = (self.json("score", DEMO, "--text", TEXT, *args, *views, "--json") for args in ((), ("--preflight",)))
        self.assertEqual(plain, checked)
        config = self.adapter / "adapter_config.json"
        config.write_text(config.read_text().replace('"scale": 2.0', '"scale": 1e38'))
        self.fails("score", DEMO, "--preflight", "--adapter", self.adapter, "--views", "base,1e30", says='preflight: view "1e30"')
        self.fails("score", DEMO, "--text", TEXT, "--preflight", "--adapter", self.folder / "none", says="none")
        self.fails("score", DEMO, says="one of", code=2)

    def test_a_broken_view_is_said_to_be_one(self):
        config = self.adapter / "adapter_config.json"
        config.write_text(config.read_text().replace('"scale": 2.0', '"scale": 1e38'))
        broken = ["score", DEMO, "--adapter", self.adapter, "--views", "1e30"]
        text = self.ok(*broken, "--text", "hello you").decode()
        self.assertNotIn("-nan", text)
        self.assertIn("sum nan, mean nan", text)
        text = self.ok(*broken, "--prompt", "hello you", "--top-k", "2").decode()
        self.assertEqual(text.splitlines()[-1].split(), ["nan", "all", "others"])
        got = self.json(*broken, "--prompt", "hello you", "--top-k", "2", "--json")["views"]["1e30"]["next"]
        self.assertEqual((got["tail_logprob"], got["tail_underflow"]), (None, False))
        pair = ["score", DEMO, "--adapter", self.adapter, "--views", "base,1e30", "--top-k", "0", "--diff"]
        text = self.ok(*pair, "--text", "hello you").decode()
        self.assertNotIn("-nan", text)
        self.assertEqual([line.split()[:2] for line in text.splitlines()[1:3]][0], ["-", "-"])
        self.assertEqual(text.splitlines()[2].split()[1], "nan")
        self.assertIn("sum nan, mean nan", text.splitlines()[-1])
        self.assertIn("1 not finite and left out", text.splitlines()[-1])
        page = self.folder / "page.html"
        got = self.json(*pair, "--text", "hello you", "--html", page, "--json")["diff"]["views"]["1e30"]
        self.assertEqual(got, {"deltas": [None, None], "left_out": 1, "sum": None, "mean": None, "mean_interval": [None, None],
                               "mean_change": None, "kl": None, "js": None, "z": None})
        self.assertNotIn("nan", page.read_text(encoding="utf-8"))

    def test_bad_views(self):
        score = ["score", DEMO, "--text", "hello"]
        self.fails(*score, "--views", "ft", says="needs an adapter")
        self.fails(*score, "--views", "base,base", says="twice")
        self.fails(*score, "--views", "bass", says="bass")
        self.fails(*score, "--diff", says="two views")
        self.fails(*score, "--adapter", self.folder / "none", says="none")
        self.fails(*score, "--adapter", self.adapter, "--views", "base,null:1:0.02:0", says="rank_scale")
        self.fails(*score, "--adapter", self.adapter, "--html", self.folder / "no" / "page.html", says="no")
        for name in ("base", "ft", "0.5", "1e3", "null:7", "a@1", "a,b", "a b", "a\tb"):
            self.fails(*score, "--adapter", f"{name}={self.adapter}", "--views", "base", says="adapter name")
        self.fails(*score, "--adapter", f"a={self.adapter}", "--adapter", f"a={self.top}", says="two adapters")
        self.fails(*score, "--adapter", self.adapter, "--adapter", self.top, says="two adapters")
        self.ok(*score, "--adapter", f"null={self.adapter}", "--adapter", f"v1.5-b={self.top}", "--views", "null@0.5,v1.5-b")


if __name__ == "__main__":
    unittest.main()
