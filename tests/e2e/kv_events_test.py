# SPDX-License-Identifier: Apache-2.0
"""Events of the prefix cache for a subscriber of ZeroMQ. Runs in an environment of its own (kv_events_requirements.txt)."""
import random
import signal
import socket
import struct
import time
import unittest

import msgpack
import zmq

from saker import DEMO
from server import ServerTest

BLOCK = 64


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


class KvEvents(ServerTest):
    def serve(self, *args):
        port = free_port()
        self.context = zmq.Context()
        self.addCleanup(self.context.term)
        self.subscriber = self.context.socket(zmq.SUB)
        self.addCleanup(self.subscriber.close, linger=0)
        self.subscriber.setsockopt(zmq.RECONNECT_IVL, 10)
        self.subscriber.subscribe(b"kv@")
        self.subscriber.connect(f"tcp://127.0.0.1:{port}")
        self.start("--kv-events", f"tcp://127.0.0.1:{port}", *args)
        time.sleep(0.5)
        self.numbers = []

    def receive(self, seconds=0.5):
        """The events that come until there are none for this time."""
        found = []
        while self.subscriber.poll(seconds * 1000):
            topic, number, batch = self.subscriber.recv_multipart()
            moment, events, rank = msgpack.unpackb(batch)
            self.assertTrue(topic.decode().endswith("@demo"), topic)
            self.assertLess(abs(moment - time.time()), 60)
            self.assertEqual(rank, 0)
            self.numbers.append(struct.unpack(">Q", number)[0])
            found += events
        return found

    def stored(self, seconds=0.5):
        return [event for event in self.receive(seconds) if event["type"] == "BlockStored"]

    def complete(self, tokens, **more):
        self.post("/v1/completions", {"prompt": tokens, "max_tokens": 1, "temperature": 0, "ignore_eos": True, **more})

    def prompt(self, seed, count=200):
        dice = random.Random(seed)
        return [dice.randrange(300) for _ in range(count)]

    def test_blocks_of_prompts(self):
        self.serve()
        self.receive()
        prompt = self.prompt(1)
        self.complete(prompt)
        events = self.stored(2)
        self.assertEqual(sum((event["token_ids"] for event in events), []), prompt[:192])
        hashes = sum((event["block_hashes"] for event in events), [])
        self.assertEqual((len(hashes), len(set(hashes))), (3, 3))
        self.assertIsNone(events[0]["parent_block_hash"])
        for event in events:
            self.assertEqual((event["block_size"], event["lora_name"], event["medium"], len(event["extra_keys"])), (BLOCK, None, "GPU", len(event["block_hashes"])))
        self.complete(prompt)
        self.assertEqual(self.stored(), [])
        branch = prompt[:130] + self.prompt(2, 100)
        self.complete(branch)
        other, = self.stored(2)
        self.assertEqual((other["parent_block_hash"], other["token_ids"]), (hashes[1], branch[128:192]))
        self.complete(self.prompt(3), cache_salt="mine")
        self.assertEqual(self.stored(), [])
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(30), 0)
        self.assertEqual(self.receive(2)[-1], {"type": "AllBlocksCleared"})
        self.assertEqual(self.numbers, list(range(self.numbers[0], self.numbers[0] + len(self.numbers))))

    def test_blocks_that_leave(self):
        self.serve("--prefix-cache", "8M")
        held, removed = set(), 0
        for i in range(60):
            self.complete(self.prompt(i, 400))
            for event in self.receive(0.05):
                if event["type"] == "BlockStored":
                    self.assertTrue(event["parent_block_hash"] is None or event["parent_block_hash"] in held)
                    held |= set(event["block_hashes"])
                elif event["type"] == "BlockRemoved":
                    self.assertLessEqual(set(event["block_hashes"]), held)
                    held -= set(event["block_hashes"])
                    removed += 1
            if removed > 3:
                return
        self.fail("no block was removed")

    def test_arrays_for_old_routers(self):
        self.serve("--kv-events-format", "array", "--kv-events-topic", "kv@10.0.0.1@{model}")
        self.receive()
        prompt = self.prompt(1, 70)
        self.complete(prompt)
        event, = self.receive(2)
        self.assertEqual((event[0], event[2], event[3], event[4]), ("BlockStored", None, prompt[:64], BLOCK))

    def test_a_late_subscriber_does_not_hold_up_anybody(self):
        self.serve("--prefix-cache", "8M")
        for i in range(10):
            self.complete(self.prompt(i, 400))
        self.assertTrue(self.receive())

    def test_wrong_endpoints(self):
        for wrong in ("5557", "tcp://nowhere.invalid:1", "udp://127.0.0.1:5557"):
            self.fails("serve", DEMO, "--port", "0", "--kv-events", wrong, says="--kv-events")
        self.fails("serve", DEMO, "--kv-events-topic", "a", says="--kv-events", code=2)


if __name__ == "__main__":
    unittest.main()
