# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers.py finds each kind of fault in a tree of one file, and none in a clean one."""

import pathlib
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))
import check_layers  # noqa: E402

HEAD = "// SPDX-License-Identifier: Apache-2.0\n"


def findings(rel: str, text: str, **more: str) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        for name, content in {rel: text, **more}.items():
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return check_layers.check(top)


class CheckLayers(unittest.TestCase):
    def one(self, expected: str, rel: str, text: str, **more: str) -> None:
        found = findings(rel, text, **more)
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def test_clean_tree_is_silent(self) -> None:
        text = HEAD + '#include "saker/cache/kv.h"\n#include "mlx/mlx.h"\nint f() {\n  return 1;\n}\n'
        self.assertEqual(findings("saker/nn/a.cpp", text), [])

    def test_include_upwards(self) -> None:
        self.one("must not include saker/nn/linear.h", "saker/cache/a.cpp", HEAD + '#include "saker/nn/linear.h"\n')

    def test_public_headers_include_public_ones_alone(self) -> None:
        text = HEAD + '#pragma once\n#include "saker/base/hash.h"\n'
        self.one("must not include the private saker/base/hash.h", "include/saker/text/a.h", text)

    def test_mlx_where_there_is_none(self) -> None:
        for include in ('"mlx/mlx.h"', "<mlx/ops.h>"):
            self.one("must not include MLX", "saker/base/a.h", f"{HEAD}#pragma once\n#include {include}\n")

    def test_rust_only_in_text_and_cli(self) -> None:
        self.one("must not include saker_rs.h", "saker/load/a.cpp", HEAD + '#include "saker_rs.h"\n')

    def test_bindings_take_the_engine_only(self) -> None:
        good = HEAD + '#include "saker/engine/engine.h"\n#include <nanobind/nanobind.h>\n'
        self.assertEqual(findings("python/bindings/a.cpp", good), [])
        for include in ("saker/generate/bench.h", "mlx/mlx.h"):
            self.one(f"must not include {include}", "python/bindings/a.cpp", f'{HEAD}#include "{include}"\n')

    def test_cache_classes_are_included_by_their_bindings_only(self) -> None:
        text = HEAD + '#include "saker/caches/kv.h"\n'
        for room in check_layers.ROOMS:
            if room != "caches":
                self.one("must not include saker/caches/kv.h", f"saker/{room}/a.cpp", text)
        self.one("must not include saker/caches/kv.h", "python/bindings/a.cpp", text)
        self.assertEqual(findings("python/caches/a.cpp", text + '#include "saker/kernels/mx.h"\n'), [])
        self.one("must not include saker/engine/engine.h", "python/caches/a.cpp", HEAD + '#include "saker/engine/engine.h"\n')

    def test_unknown_folder(self) -> None:
        self.one("is not in tools/rooms.toml", "saker/extra/a.cpp", HEAD)
        self.one("is not in tools/rooms.toml", "saker/load/extra/a.cpp", HEAD)

    def test_sizes(self) -> None:
        self.one("501 lines > 500", "saker/base/a.cpp", HEAD + "\n" * 500)
        self.one("201 lines > 200", "saker/base/a.h", HEAD + "#pragma once\n" + "\n" * 199)
        self.one("a body of 81 lines", "saker/base/a.cpp", HEAD + "int f() {\n" + "  g();\n" * 81 + "}\n")

    def test_exempt_list_needs_reasons_and_files(self) -> None:
        text = HEAD + "\n" * 500
        rel = "saker/base/a.cpp"
        with_list = lambda row: findings(rel, text, **{"tools/size_exempt.txt": row})  # noqa: E731
        self.assertEqual(with_list(f"{rel}  a generated table\n"), [])
        self.assertIn("has no reason", with_list(f"{rel}\n")[0])
        self.assertIn("does not exist", "".join(with_list("saker/base/gone.cpp  once\n")))

    def test_names_and_form(self) -> None:
        self.one("says nothing", "saker/base/utils.cpp", HEAD)
        self.one("says nothing", "tests/helpers/a.cpp", HEAD)
        self.one("SPDX", "saker/base/a.cpp", "int x;\n")
        self.one("#pragma once", "saker/base/a.h", HEAD)
        self.one("using namespace", "saker/base/a.cpp", HEAD + "using namespace std;\n")

    def test_include_between_rooms_of_one_folder(self) -> None:
        text = HEAD + '#include "saker/kernels/ops/linear.h"\n'
        self.one("must not include saker/kernels/ops/linear.h", "saker/kernels/storage/a.cpp", text)
        self.assertEqual(findings("saker/kernels/ops/a.cpp", HEAD + '#include "saker/kernels/storage/kv_store.h"\n'), [])

    def test_rooms_that_include_each_other(self) -> None:
        room = lambda path, *beside, includes=(): check_layers.Room(path, "", frozenset(beside), includes)  # noqa: E731
        mutual = {"load/a": room("load/a", "load/b"), "load/b": room("load/b", "load/a"), "load": room("load", includes=("base",))}
        found = check_layers.table_is_sound(mutual)
        self.assertEqual(found, ["tools/rooms.toml: load/b is not above load/a", "tools/rooms.toml: load names base, which is no room"])
        self.assertEqual(check_layers.table_is_sound(check_layers.ROOMS), [])

    def test_page_says_the_same(self) -> None:
        page = (TOP / "docs/architecture.md").read_text()
        false_page = page.replace("| base kernels cache, weights |", "| base kernels, weights |")
        self.assertNotEqual(page, false_page)
        self.one("its rooms are not those", "saker/nn/a.cpp", HEAD, **{"docs/architecture.md": false_page})

    def test_architectures_are_named_in_models_only(self) -> None:
        registry = {"saker/models/registry.cpp": HEAD + '    Row{"generic", generic},\n    Row{"llama", llama},\n    Row{"qwen3_moe", f},\n'}
        for line in ('f("qwen3_5");', "bool is_qwen3(int x);", "models::qwen3_moe();", "Qwen35 x;", "auto x = Family::kLlama;"):
            self.one("a.cpp:2: ", "saker/load/a.cpp", f"{HEAD}{line}\n", **registry)
            self.assertEqual(findings("saker/load/gguf/a.cpp", f"{HEAD}{line}\n", **registry), [])
        self.one("saker/adapters/a.h:3: qwen3_moe names", "saker/adapters/a.h", f'{HEAD}#pragma once\nf("qwen3_moe");\n', **registry)
        for line in ("// As in Qwen 3.", 'f("ollama");', 'f("Ollama");', "int generic;", 'f("qwensor");'):
            self.assertEqual(findings("saker/load/a.cpp", f"{HEAD}{line}\n", **registry), [])

    def test_depth(self) -> None:
        found = findings("saker/kernels/cpu/gemm/more/a.cpp", HEAD)
        self.assertIn("deeper than 4", "".join(found))

    def test_too_many_files(self) -> None:
        more = {f"saker/base/f{i}.cpp": HEAD for i in range(40)}
        self.one("41 files > 40", "saker/base/a.cpp", HEAD, **more)


if __name__ == "__main__":
    unittest.main()
