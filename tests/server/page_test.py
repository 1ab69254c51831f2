# SPDX-License-Identifier: Apache-2.0
"""The page's files: who gets them, and behind which policy."""
import gzip
import unittest

from fake import FakeServerTest

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


class Page(FakeServerTest):
    KEY = "secret"

    def test_browsers_get_the_page_without_a_key(self):
        status, headers, body = self.server.request("GET", "/", headers=BROWSER)
        self.assertEqual(status, 200)
        self.assertEqual(headers["content-type"], "text/html; charset=utf-8")
        self.assertLessEqual(len(body), 200_000)
        self.assertTrue(body.startswith(b"<!doctype html>"), body[:50])
        policy = headers["content-security-policy"]
        self.assertTrue(policy.startswith("default-src 'none'; script-src 'sha256-"), policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual(self.server.request("GET", "/v1/models")[0], 401)

    def test_other_clients_get_a_line(self):
        status, _, body = self.server.request("GET", "/")
        self.assertEqual((status, body), (200, b"Saker is running\n"))
        for headers in ({}, BROWSER):
            status, _, body = self.server.request("HEAD", "/", headers=headers)
            self.assertEqual((status, body), (200, b""))

    def test_a_known_file_is_not_sent_again(self):
        for path in ("/", "/page/highlight.js", "/page/katex.js", "/page/licenses.txt"):
            _, headers, body = self.server.request("GET", path, headers=BROWSER)
            self.assertGreater(len(body), 1000)
            known = {**BROWSER, "If-None-Match": headers["etag"]}
            status, headers, body = self.server.request("GET", path, headers=known)
            self.assertEqual((status, body), (304, b""))
            self.assertNotIn("content-length", headers)

    def test_the_readers_of_pdf_files_are_compressed(self):
        total = 0
        for path in ("/page/pdf.js", "/page/pdf.worker.js"):
            _, headers, body = self.server.request("GET", path, headers=BROWSER)
            self.assertEqual(headers["content-encoding"], "gzip")
            self.assertEqual(headers["content-type"], "text/javascript; charset=utf-8")
            self.assertIn(b"getTextContent" if path == "/page/pdf.js" else b"WorkerMessageHandler", gzip.decompress(body))
            total += len(body)
        self.assertLessEqual(total, 600_000)

    def test_there_is_nothing_else(self):
        for path in ("/page/", "/page/policy.txt", "/page/../service.cpp", "/page/%2e%2e/x"):
            self.assertEqual(self.server.request("GET", path, headers=BROWSER)[0], 404, path)


if __name__ == "__main__":
    unittest.main()
