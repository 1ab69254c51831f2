# SPDX-License-Identifier: Apache-2.0
"""The cache classes of mlx-lm over arrays of mlx.core: members, files and errors."""

import copy
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest

import mlx.core as mx

import saker
from saker import caches

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "caches"


def rows(first, count, batch=1, heads=2, width=64, dtype=mx.bfloat16):
    """Keys whose elements all differ, and values."""
    size = batch * heads * count * width
    keys = mx.sin(mx.arange(first * width, first * width + size).astype(mx.float32)).reshape(batch, heads, count, width)
    return keys.astype(dtype), (-keys).astype(dtype)


def appended(cache, *counts, batch=1):
    offset = 0
    for count in counts:
        cache.update_and_fetch(*rows(offset, count, batch))
        offset += count
    return cache


def every_class():
    slots = caches.ArraysCache(3, left_padding=[1, 0])
    slots[1] = mx.arange(6).reshape(2, 3)
    return [
        appended(caches.KVCache(), 5, 1),
        appended(caches.RotatingKVCache(max_size=4, keep=1), 3, 1, 1),
        appended(caches.ChunkedKVCache(4), 5),
        appended(caches.QuantizedKVCache(group_size=32, bits=4), 5),
        appended(caches.QuantizedRotatingKVCache(4, 1, group_size=64, bits=8), 3, 1, 1),
        appended(caches.BatchKVCache([1, 0]), 5, batch=2),
        appended(caches.BatchRotatingKVCache(4, [0, 2]), 3, 1, 1, batch=2),
        slots,
        caches.CacheList(appended(caches.KVCache(), 3), caches.RotatingKVCache(8)),
        caches.KVCache(),
        caches.RotatingKVCache(16, keep=4),
        caches.CacheList(),
    ]


class CachesTest(unittest.TestCase):
    def assert_same(self, found, expected):
        """Two states: the same arrays, bit for bit, and the same other values."""
        self.assertEqual(isinstance(found, mx.array), isinstance(expected, mx.array))
        if isinstance(found, mx.array):
            self.assertEqual(found.dtype, expected.dtype)
            self.assertEqual(found.shape, expected.shape)
            self.assertTrue(mx.array_equal(found, expected).item())
        elif isinstance(found, list | tuple):
            self.assertEqual(len(found), len(expected))
            for one, other in zip(found, expected):
                self.assert_same(one, other)
        else:
            self.assertEqual((type(found), found), (type(expected), expected))


class Classes(CachesTest):
    def test_arrays_are_those_of_mlx(self):
        cache = caches.make_prompt_cache(4)[0]
        new = rows(0, 3)
        keys, values = cache.update_and_fetch(*new)
        self.assertIs(type(keys), mx.array)
        self.assert_same((keys, values), new)
        self.assertEqual(keys.dtype, mx.bfloat16)
        keys, _ = cache.update_and_fetch(*rows(3, 2))
        self.assert_same(keys[:, :, :3], new[0])
        self.assertEqual((cache.offset, cache.size(), cache.empty()), (5, 5, False))
        self.assert_same(cache.keys_and_values(), (cache.keys, cache.values))
        self.assertGreaterEqual(cache.nbytes, keys.nbytes)

    def test_arrays_stay_lazy(self):
        """The graph goes through a cache: a gradient does, too."""

        def loss(x):
            return caches.KVCache().update_and_fetch(x, x)[0].square().sum()

        x = rows(0, 2, dtype=mx.float32)[0]
        self.assert_same(mx.grad(loss)(x), 2 * x)

    def test_results_do_not_change_with_the_next_update(self):
        cache = appended(caches.KVCache(), 300)
        keys = cache.keys
        before = mx.array(keys)
        mx.eval(before)
        for i in range(3):
            cache.trim(1)
            cache.update_and_fetch(*rows(1000 + i, 1))
        self.assert_same(keys, before)

    def test_states(self):
        states = [cache.state for cache in every_class()]
        self.assertEqual(states[0][2:], (6,))
        self.assertEqual(states[1][2:], (5, 1, 4, 2))
        self.assertEqual(states[2][2:], (5, 4, 0))
        self.assertEqual(states[3][2:], (5, 32, 4))
        self.assertEqual([len(codes) for codes in states[3][:2]], [3, 3])
        self.assertEqual(states[5][2].tolist(), [4, 5])
        self.assertEqual(states[6][4:], (4, 5, 1, True))
        self.assertEqual([slot is None for slot in states[7][0]], [True, False, True])
        self.assertEqual(states[7][1].tolist(), [1, 0])
        self.assertEqual([name for _, name in states[8]], ["KVCache", "RotatingKVCache"])
        self.assertEqual(states[9], (None, None, 0))

    def test_a_state_makes_the_same_cache(self):
        for cache in every_class():
            with self.subTest(type(cache).__name__):
                again = type(cache).from_state(cache.state)
                self.assertIs(type(again), type(cache))
                self.assert_same(again.state, cache.state)
                self.assertEqual(again.meta_state, cache.meta_state)
                other = copy.deepcopy(cache)
                self.assertIsNot(other, cache)
                other.state = again.state
                self.assert_same(other.state, cache.state)

    def test_copies_are_independent(self):
        cache = appended(caches.KVCache(), 3)
        other = copy.deepcopy(cache)
        other.update_and_fetch(*rows(9, 1))
        self.assertEqual((cache.offset, other.offset), (3, 4))

    def test_masks(self):
        cache = appended(caches.KVCache(), 2)
        self.assertIsNone(cache.make_mask(1))
        self.assertEqual(cache.make_mask(2), "causal")
        self.assertEqual(cache.make_mask(2, return_array=True).tolist(), [[True] * 3 + [False], [True] * 4])
        self.assertEqual(cache.make_mask(1, window_size=2).tolist(), [[False, True, True]])
        self.assertEqual(caches.BatchKVCache([1, 0]).make_mask(2).shape, (2, 1, 2, 2))

    def test_bounds(self):
        ring = appended(caches.RotatingKVCache(4, keep=1), *[1] * 6)
        self.assertEqual((ring.offset, ring.size(), ring.max_size, ring.keep, ring.is_trimmable()), (6, 4, 4, 1, False))
        chunked = appended(caches.ChunkedKVCache(4), 6)
        chunked.maybe_trim_front()
        self.assertEqual((chunked.start_position, chunked.chunk_size, chunked.offset), (2, 4, 6))
        self.assertIsNone(caches.ChunkedKVCache(None).chunk_size)
        self.assertEqual(ring.trim(1), 0)
        self.assertEqual(chunked.trim(2), 2)

    def test_quantized_rows_are_those_of_mlx(self):
        plain = appended(caches.KVCache(), 5)
        codes = plain.to_quantized(group_size=32, bits=4)
        self.assertEqual((type(codes), codes.group_size, codes.bits, codes.offset), (caches.QuantizedKVCache, 32, 4, 5))
        keys, _ = codes.update_and_fetch(*rows(5, 1))
        self.assert_same(tuple(part[:, :, :5] for part in keys), mx.quantize(plain.keys, group_size=32, bits=4))
        ring = appended(caches.RotatingKVCache(4), 3, 1, 1).to_quantized()
        self.assertEqual((type(ring), ring.bits, ring.max_size), (caches.QuantizedRotatingKVCache, 4, 4))
        self.assertFalse(hasattr(plain, "bits"))

    def test_batches(self):
        single = [appended(caches.KVCache(), count) for count in (3, 1)]
        batch = caches.KVCache.merge(single)
        self.assertEqual((batch.offset.tolist(), batch.left_padding.tolist()), ([3, 1], [0, 2]))
        batch.extend(caches.BatchKVCache.merge([appended(caches.KVCache(), 2)]))
        batch.filter(mx.array([2, 0]))
        self.assertEqual(batch.offset.tolist(), [2, 3])
        self.assert_same(batch.extract(1).state, single[0].state)
        batch = caches.BatchKVCache([0, 0])
        batch.prepare(lengths=[3, 1], right_padding=[0, 2])
        appended(batch, 3, batch=2)
        batch.finalize()
        self.assertEqual((batch.offset.tolist(), batch.left_padding.tolist()), ([3, 1], [0, 2]))
        ring = caches.RotatingKVCache.merge([appended(caches.RotatingKVCache(4), count) for count in (6, 2)])
        self.assertEqual((ring.max_size, ring.offset.tolist()), (4, [6, 2]))

    def test_slots(self):
        cache = caches.MambaCache()
        self.assertIs(type(cache), caches.ArraysCache)
        self.assertTrue(cache.empty())
        self.assertIsNone(cache[-1])
        cache[0] = mx.ones((2, 3))
        cache[-1] = mx.zeros((2, 3))
        self.assertEqual((cache[0].tolist(), cache.batch_size, cache.nbytes), ([[1.0] * 3] * 2, 2, 48))
        cache.prepare(lengths=[2, 1])
        self.assertEqual(cache.make_mask(2).tolist(), [[True, True], [True, False]])
        cache.advance(1)
        self.assertEqual((cache.lengths.tolist(), cache.left_padding), ([1, 0], None))
        cache.finalize()
        self.assertIsNone(cache.lengths)
        both = caches.ArraysCache.merge([cache.extract(1), cache.extract(0)])
        cache.extend(both)
        cache.filter([3])
        self.assert_same(cache[0], mx.ones((1, 3)))
        with self.assertRaises(IndexError):
            cache[2]

    def test_lists_share_their_children(self):
        child = caches.KVCache()
        cache = caches.CacheList(child, caches.ArraysCache(1))
        self.assertIs(cache[0], child)
        appended(child, 2)
        self.assertEqual((cache.size(), cache.empty(), cache.is_trimmable()), (2, False, False))
        self.assertIs(cache.caches[-1], cache[1])
        del child
        self.assertEqual(cache[0].offset, 2)
        cache[1][0] = mx.ones((1, 2))
        merged = caches.CacheList.merge([cache, copy.deepcopy(cache)])
        self.assertIs(type(merged[0]), caches.BatchKVCache)
        merged.prepare(lengths=[1, 1])
        self.assertEqual(merged[1].lengths.tolist(), [1, 1])
        merged.finalize()
        merged.extend(merged.extract(0).merge([cache]))
        merged.filter([2])
        self.assertEqual(merged[0].offset.tolist(), [2])


class Files(CachesTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "prompt.safetensors"

    def test_every_class_comes_back_bit_for_bit(self):
        saved = every_class()
        caches.save_prompt_cache(self.file, saved, {"model": "mine"})
        loaded, metadata = caches.load_prompt_cache(str(self.file), return_metadata=True)
        self.assertEqual(metadata, {"model": "mine"})
        for one, other in zip(loaded, saved, strict=True):
            self.assertIs(type(one), type(other))
            self.assert_same(one.state, other.state)
        self.assertEqual(len(caches.load_prompt_cache(self.file)), len(saved))

    def test_files_of_mlx_lm(self):
        loaded, metadata = caches.load_prompt_cache(GOLDEN / "kinds.safetensors", return_metadata=True)
        self.assertEqual(metadata, {"note": "every class", "a.b": "dotted"})
        names = [type(cache).__name__ for cache in loaded]
        self.assertEqual(names[4:10], ["ChunkedKVCache", "QuantizedKVCache", "ArraysCache", "BatchKVCache", "BatchRotatingKVCache", "CacheList"])
        self.assertEqual(loaded[0].keys[0, 0, :, 0].tolist(), [0, 1, 2, 3, 4])
        self.assertEqual(loaded[1].state[2:], (11, 4, 8, 7))

    def test_trimming_all_layers_or_none(self):
        cache = [appended(cache, 3) for cache in caches.make_prompt_cache(2)]
        self.assertTrue(caches.can_trim_prompt_cache(cache))
        self.assertEqual(caches.trim_prompt_cache(cache, 2), 2)
        self.assertEqual([layer.offset for layer in cache], [1, 1])
        cache.append(caches.ArraysCache(1))
        self.assertFalse(caches.can_trim_prompt_cache(cache))
        self.assertEqual(caches.trim_prompt_cache(cache, 1), 0)
        self.assertEqual(caches.trim_prompt_cache([], 1), 0)

    def test_prompt_caches_for_models(self):
        class Model:
            layers = [None] * 3

        class Own:
            def make_cache(self):
                return [caches.KVCache(), RotatingKVCache()]

        class RotatingKVCache:
            state = (None, None, 0, 2, 8, 0)

        self.assertEqual([type(cache).__name__ for cache in caches.make_prompt_cache(Model())], ["KVCache"] * 3)
        rings = caches.make_prompt_cache(Model(), max_kv_size=16)
        self.assertEqual([(ring.max_size, ring.keep) for ring in rings], [(16, 4)] * 3)
        own = caches.make_prompt_cache(Own(), max_kv_size=16)
        self.assertEqual((type(own[0]), own[1].state), (caches.KVCache, RotatingKVCache.state))

    def test_errors(self):
        """One clear line, of the package's own classes."""

        class Unknown:
            def make_cache(self):
                return [Unknown()]

            state = ()

        self.file.write_bytes((GOLDEN / "kinds.safetensors").read_bytes()[:-9])
        half = appended(caches.KVCache(), 2)
        for error, text, call in (
            (saker.CorruptDataError, "prompt.safetensors", lambda: caches.load_prompt_cache(self.file)),
            (saker.NotFoundError, "none", lambda: caches.load_prompt_cache(self.file.parent / "none")),
            (saker.InvalidArgumentError, "no caches", lambda: caches.save_prompt_cache(self.file, [])),
            (saker.InvalidArgumentError, "None among", lambda: caches.save_prompt_cache(self.file, [None])),
            (saker.InvalidArgumentError, "0 layers", lambda: caches.make_prompt_cache(0)),
            (saker.InvalidArgumentError, "max_kv_size is 0", lambda: caches.make_prompt_cache(1, 0)),
            (saker.InvalidArgumentError, "max_kv_size is -7", lambda: caches.make_prompt_cache(1, -7)),
            (saker.InvalidArgumentError, "max_kv_size is 2147483648", lambda: caches.make_prompt_cache(1, 2**31)),
            (saker.UnsupportedError, "'mamba'", lambda: caches.make_prompt_cache(types.SimpleNamespace(model_type="mamba"))),
            (saker.UnsupportedError, "'Unknown'", lambda: caches.make_prompt_cache(Unknown())),
            (saker.InvalidArgumentError, "keep", lambda: caches.RotatingKVCache(2, keep=2)),
            (saker.InvalidArgumentError, "7 bits", lambda: caches.QuantizedKVCache(bits=7)),
            (saker.InvalidArgumentError, "multiples of 32", lambda: caches.QuantizedKVCache(32).update_and_fetch(*rows(0, 1, width=33))),
            (saker.InvalidArgumentError, "expected both", lambda: half.update_and_fetch(rows(0, 2)[0], rows(0, 1)[0])),
            (saker.InvalidArgumentError, "for a cache of", lambda: half.update_and_fetch(*rows(0, 1, heads=3))),
            (saker.InvalidArgumentError, "no caches", lambda: caches.KVCache.merge([])),
            (saker.InvalidArgumentError, "batch row 3 of 1", lambda: caches.BatchKVCache.merge([half]).filter([3])),
            (saker.UnsupportedError, "slots are set", lambda: caches.ArraysCache(1).update_and_fetch(*rows(0, 1))),
            (saker.UnsupportedError, "children", lambda: caches.CacheList().make_mask(1)),
            (saker.CorruptDataError, "list of 3 values", lambda: caches.KVCache.from_state((1, 2))),
            (saker.CorruptDataError, "rows are used", lambda: caches.KVCache.from_state((*rows(0, 2), 3))),
            (TypeError, "object in a cache's state", lambda: caches.KVCache.from_state((object(), None, 0))),
            (TypeError, "batch_indices", lambda: caches.BatchKVCache([0]).filter("x")),
            (TypeError, "incompatible", lambda: half.update_and_fetch(1, 2)),
            (TypeError, "expected caches", lambda: caches.CacheList(3)),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, re.escape(text)) as caught:
                call()
            if issubclass(error, saker.Error):
                self.assertNotIn("\n", str(caught.exception))
        self.assertEqual(half.offset, 2)


class Package(unittest.TestCase):
    def python(self, code):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    def test_mlx_is_loaded_when_caches_are_used(self):
        done = self.python("import sys, saker; print('mlx.core' in sys.modules, saker.caches.KVCache().offset, 'mlx.core' in sys.modules)")
        self.assertEqual((done.stdout, done.stderr), ("False 0 True\n", ""))

    def test_one_libmlx(self):
        for first, second in (("saker", "mlx.core"), ("mlx.core", "saker")):
            done = self.python(
                f"import {first}, {second}, saker.caches\n"
                "saker.caches.KVCache()\n"
                "print(len({line.split()[-1] for line in open('/proc/self/maps') if 'libmlx' in line}))"
            )
            self.assertEqual((done.stdout, done.stderr), ("1\n", ""))

    def test_another_mlx_is_refused(self):
        done = self.python("from saker import _caches; _caches.shares_arrays = lambda: False; import saker.caches")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\nImportError: mlx [0-9.]+ does not share its arrays: saker was built for another one\n")

    def test_no_other_name(self):
        with self.assertRaisesRegex(AttributeError, "no attribute 'cache'"):
            saker.cache  # noqa: B018

    def test_documentation(self):
        """The Python of docs/caches.md, as one program."""
        page = (ROOT / "docs" / "caches.md").read_text()
        code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
        with tempfile.TemporaryDirectory() as folder:
            before = os.getcwd()
            os.chdir(folder)
            self.addCleanup(os.chdir, before)
            values: dict = {}
            exec(compile(code, "caches.md", "exec"), values)
        self.assertEqual((values["offsets"].tolist(), values["second"].offset), ([17, 10], 10))
        self.assertEqual((values["dropped"], values["metadata"], values["quantized"].offset), (2, {"model": "mine"}, 17))
        for name in caches.__all__:
            self.assertTrue(getattr(caches, name).__doc__, name)


if __name__ == "__main__":
    unittest.main()
