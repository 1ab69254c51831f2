# SPDX-License-Identifier: Apache-2.0
"""TLS and inherited sockets."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest

from fake import PROGRAM, USER, Server, events

PATH = "/v1/chat/completions"
LOCKED_KEY = """\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAj2wo0a2rSgZgICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEECrrDv0N7MkZ4wPT5pOlj+0EQNHB
KhFGVu6Emuc31PIufnq3XD/SOzjjd8zFtkzcotbEmQblcsk1cJ5mWL5+/SgA/xv2
MmSODCAakZGWQ/ZzeIk=
-----END ENCRYPTED PRIVATE KEY-----
"""


class Tls(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.certificate, self.key = self.folder / "cert.pem", self.folder / "key.pem"
        self.make_certificate()
        self.server = Server([{"when": "long", "events": [{"content": "x" * 100, "repeat": 3000}]}],
                             options={"tls_cert": str(self.certificate), "tls_key": str(self.key)})
        self.addCleanup(self.server.stop)

    def make_certificate(self):
        subprocess.run([PROGRAM, "--certificate", self.certificate, self.key], check=True)

    def context(self):
        return ssl.create_default_context(cafile=str(self.certificate))

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.server.port, timeout=20, context=self.context())

    def ask(self, text, **more):
        connection = self.connect()
        self.addCleanup(connection.close)
        connection.request("POST", PATH, json.dumps({"messages": [{"role": "user", "content": text}], **more}))
        response = connection.getresponse()
        return response.status, response.read()

    def test_answers_and_streams(self):
        self.assertTrue(self.server.address.startswith("https://127.0.0.1:"))
        self.assertIn(b"Hello", self.ask("Hello")[1])
        status, data = self.ask("long", stream=True)
        text = "".join(choice["delta"].get("content", "") for _, chunk in events(data)[:-1] for choice in chunk["choices"])
        self.assertEqual((status, text), (200, "x" * 300000))
        self.assertEqual(json.loads(self.ask("long")[1])["choices"][0]["message"]["content"], text)
        self.assertEqual(self.ask("Hello", metadata={"a": "y" * 300000})[0], 200)

    def test_one_connection_takes_many_requests(self):
        connection = self.connect()
        for _ in range(3):
            connection.request("POST", PATH, json.dumps({"messages": USER}))
            self.assertEqual(connection.getresponse().read()[:1], b"{")
        self.assertEqual(connection.sock.version(), "TLSv1.3")
        connection.close()

    def test_protocols(self):
        context = self.context()
        context.set_alpn_protocols(["h2", "http/1.1"])
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as plain:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
                self.assertEqual(secure.selected_alpn_protocol(), "http/1.1")
        old = self.context()
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as plain:
            with self.assertRaises((ssl.SSLError, OSError)):
                old.wrap_socket(plain, server_hostname="127.0.0.1")

    def test_others_than_tls_are_dropped(self):
        for data in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01" + b"\xff" * 3000, b"\0" * 100):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as one:
                one.sendall(data)
                got = b"".join(iter(lambda: one.recv(65536), b"")) if data[:1] != b"\x16" else b""
                self.assertNotIn(b"HTTP/1.1 200", got)
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as silent:
            start = time.monotonic()
            self.assertEqual(silent.recv(100), b"")
            self.assertLess(time.monotonic() - start, 6)
        self.assertEqual(self.ask("Hello")[0], 200)

    def test_a_client_that_goes_away_ends_its_answer(self):
        connection = self.connect()
        connection.request("POST", PATH, json.dumps({"messages": [{"role": "user", "content": "long"}], "stream": True}))
        connection.getresponse()
        connection.sock.close()
        connection.close()
        self.assertEqual(self.ask("Hello")[0], 200)

    def test_new_certificates_are_read(self):
        first = ssl.get_server_certificate(("127.0.0.1", self.server.port))
        for how in ("change", "signal"):
            time.sleep(1.1)
            self.make_certificate()
            if how == "signal":
                self.server.process.send_signal(signal.SIGHUP)
                time.sleep(0.3)
            second = ssl.get_server_certificate(("127.0.0.1", self.server.port))
            self.assertNotEqual(first, second)
            first = second
        time.sleep(1.1)
        self.key.write_text("no key")
        self.assertEqual(ssl.get_server_certificate(("127.0.0.1", self.server.port)), second)
        self.assertIsNone(self.server.process.poll())

    def test_wrong_files(self):
        other = self.folder / "other.pem"
        subprocess.run([PROGRAM, "--certificate", self.folder / "c2.pem", other], check=True)
        locked = self.folder / "locked.pem"
        locked.write_text(LOCKED_KEY)
        for options, says in (({"tls_cert": str(self.certificate), "tls_key": str(locked)}, "has a passphrase"),
                              ({"tls_cert": str(self.certificate)}, "key"), ({"tls_cert": "/no-such", "tls_key": str(self.key)}, "/no-such"),
                              ({"tls_cert": str(self.certificate), "tls_key": str(other)}, "other.pem")):
            server = Server([], options=options)
            _, err, code = server.stop()
            self.assertEqual(code, 1)
            self.assertIn(says, err)


class Inherited(unittest.TestCase):
    def serve(self, listener, count="1", pid="$$"):
        script = pathlib.Path(tempfile.mkdtemp()) / "script.json"
        self.addCleanup(shutil.rmtree, script.parent, True)
        script.write_text("[]")
        command = f'export LISTEN_FDS={count} LISTEN_PID={pid}; exec "$0" "$1" 0 "" "$2"'
        process = subprocess.Popen(["sh", "-c", command, PROGRAM, script, json.dumps({"host": "systemd"})],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, close_fds=False,
                                   preexec_fn=lambda: os.dup2(os.dup(listener.fileno()), 3))
        self.addCleanup(process.communicate)
        self.addCleanup(process.terminate)
        return process

    def test_a_socket_of_systemd(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            process = self.serve(listener)
            port = listener.getsockname()[1]
            self.assertEqual(process.stdout.readline().strip(), f"http://127.0.0.1:{port}")
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/health")
            self.assertEqual(connection.getresponse().status, 200)
            connection.close()

    def test_a_unix_socket_of_systemd(self):
        path = pathlib.Path(tempfile.mkdtemp()) / "s"
        self.addCleanup(shutil.rmtree, path.parent, True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            process = self.serve(listener)
            self.assertEqual(process.stdout.readline().strip(), f"unix:{path}")
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(str(path))
                one.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                self.assertIn(b"200 OK", one.recv(65536))

    def test_without_a_socket(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            for more in ({"count": "2"}, {"pid": "1"}, {"count": ""}):
                process = self.serve(listener, **more)
                self.assertEqual(process.wait(20), 1)
                self.assertIn("handed over", process.stderr.read())


if __name__ == "__main__":
    unittest.main()
