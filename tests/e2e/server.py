# SPDX-License-Identifier: Apache-2.0
"""Runs `saker serve` on the bundled model, and sends it requests."""
import http.client
import json
import os
import re
import subprocess
import tempfile

from saker import DEMO, PROGRAM, SakerTest


class ServerTest(SakerTest):
    def start(self, *args, models=(str(DEMO),)):
        self.process = subprocess.Popen([PROGRAM, "serve", *models, "--port", "0", *args], stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, "SAKER_CONFIG": ""}, cwd=tempfile.gettempdir())
        self.addCleanup(self.process.stderr.close)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        for line in self.process.stderr:
            if found := re.search(r"is at http://127.0.0.1:(\d+)$", line.strip()):
                self.port = int(found[1])
                return
        self.fail("the server did not start")

    def request(self, path, body=None, method=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def post(self, path, body, status=200):
        got, data = self.request(path, body)
        self.assertEqual(got, status, data)
        return json.loads(data)

    def events(self, path, body):
        got, data = self.request(path, {**body, "stream": True})
        self.assertEqual(got, 200, data)
        return [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: {")]
