# SPDX-License-Identifier: Apache-2.0
"""Runs the server with a scripted model, and sends it requests."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest
import urllib.parse

PROGRAM = os.environ["SAKER_FAKE_SERVER"]
USER = [{"role": "user", "content": "Hello"}]


class Server:
    def __init__(self, script, key=None, options=None):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        path = self.folder / "script.json"
        path.write_text(json.dumps(script))
        command = [PROGRAM, path, "0", key or "", json.dumps(options or {})]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        self.port = urllib.parse.urlsplit(self.address).port

    def stop(self):
        """Ends it by SIGTERM; the lines that it then wrote, and its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=30)
        shutil.rmtree(self.folder, ignore_errors=True)
        return out, err, self.process.returncode

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)

    def request(self, method, path, body=None, headers=None):
        """Status, headers and body of one request; a body that is no text is sent as JSON."""
        connection = self.connect()
        try:
            data = body if isinstance(body, (bytes, str, type(None))) else json.dumps(body)
            connection.request(method, path, data, headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()


def events(body):
    """The events of a text/event-stream: pairs of name and data."""
    found = []
    for block in body.decode().split("\n\n"):
        name, data = None, None
        for line in block.splitlines():
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                data = line[6:] if line[6:] == "[DONE]" else json.loads(line[6:])
        if data is not None:
            found.append((name, data))
    return found


def said(body):
    """What a stream of chat chunks says: how its pieces are cut depends on who is faster."""
    chunks = [data for _, data in events(body) if data != "[DONE]"]
    return "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"])


class FakeServerTest(unittest.TestCase):
    SCRIPT = []
    KEY = None
    OPTIONS = {}

    def setUp(self):
        self.server = Server(self.SCRIPT, self.KEY, self.OPTIONS)
        self.addCleanup(self.server.stop)

    def post(self, path, body, status=200, headers=None):
        got, _, data = self.server.request("POST", path, body, headers)
        self.assertEqual(got, status, data)
        return json.loads(data)

    def stream(self, path, body):
        got, headers, data = self.server.request("POST", path, {**body, "stream": True})
        self.assertEqual(got, 200, data)
        self.assertEqual(headers["content-type"], "text/event-stream")
        return events(data)
