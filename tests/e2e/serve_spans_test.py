# SPDX-License-Identifier: Apache-2.0
"""Spans of `saker serve` in a collector of OTLP/HTTP."""
import http.client
import http.server
import json
import os
import socket
import threading
import time
import unittest
import unittest.mock

from saker import DEMO
from server import ServerTest

CHAT = "/v1/chat/completions"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
BODY = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4, "temperature": 0}


def values(attributes):
    return {one["key"]: next(iter(one["value"].values())) for one in attributes}


class Collector:
    """Keeps the spans that it gets, and the headers that came with them."""

    def __init__(self, status=200, wait=0.0):
        self.spans, self.requests = [], []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                time.sleep(wait)
                collector.requests.append((self.path, dict(self.headers), body))
                if status == 200:
                    collector.spans += [span for one in body["resourceSpans"] for scope in one["scopeSpans"] for span in scope["spans"]]
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Spans(ServerTest):
    def serve(self, **variables):
        with unittest.mock.patch.dict(os.environ, {"OTEL_BSP_SCHEDULE_DELAY": "50", **variables}):
            self.start()

    def collector(self, **options):
        collector = Collector(**options)
        self.addCleanup(collector.close)
        return collector

    def wait_for(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "waited in vain")
            time.sleep(0.02)

    def send(self, path, body, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        response.read()
        connection.close()
        return response

    def test_a_request_and_its_generation(self):
        collector = self.collector()
        self.serve(OTEL_EXPORTER_OTLP_ENDPOINT=collector.address, OTEL_EXPORTER_OTLP_HEADERS="x-team=a%20b, authorization=Bearer%20t",
                   OTEL_SERVICE_NAME="chatter", OTEL_RESOURCE_ATTRIBUTES="deployment.environment=test")
        self.request("/health")
        response = self.send(CHAT, BODY, {"traceparent": f"00-{TRACE}-{PARENT}-01"})
        self.wait_for(lambda: len(collector.spans) >= 2)
        path, headers, body = collector.requests[0]
        self.assertEqual((path, headers["Content-Type"], headers["x-team"], headers["authorization"]),
                         ("/v1/traces", "application/json", "a b", "Bearer t"))
        resource = values(body["resourceSpans"][0]["resource"]["attributes"])
        self.assertEqual((resource["service.name"], resource["deployment.environment"]), ("chatter", "test"))
        server, generation = collector.spans
        self.assertEqual((server["traceId"], server["parentSpanId"], server["name"], server["kind"]), (TRACE, PARENT, f"POST {CHAT}", 2))
        self.assertEqual(response.getheader("traceparent"), f"00-{TRACE}-{server['spanId']}-01")
        self.assertEqual((generation["traceId"], generation["parentSpanId"], generation["name"]), (TRACE, server["spanId"], "chat demo"))
        facts = values(generation["attributes"])
        self.assertEqual((facts["gen_ai.usage.output_tokens"], facts["gen_ai.operation.name"]), ("4", "chat"))
        self.assertEqual(values(server["attributes"])["http.response.status_code"], "200")
        begin, first, last, end = (int(one) for one in (server["startTimeUnixNano"], generation["startTimeUnixNano"],
                                                        generation["endTimeUnixNano"], server["endTimeUnixNano"]))
        self.assertTrue(begin <= first < last <= end, (begin, first, last, end))
        self.assertLess(abs(end / 1e9 - time.time()), 30)

    def test_clients_and_samplers_decide(self):
        collector = self.collector()
        self.serve(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=collector.address + "/mine")
        self.send(CHAT, BODY, {"traceparent": f"00-{TRACE}-{PARENT}-00"})
        answered = self.send(CHAT, {"messages": []}, {})
        self.wait_for(lambda: collector.spans)
        span, = collector.spans
        self.assertEqual(values(span["attributes"])["http.response.status_code"], "400")
        self.assertNotIn("parentSpanId", span)
        self.assertEqual(answered.getheader("traceparent"), f"00-{span['traceId']}-{span['spanId']}-01")
        self.assertEqual(collector.requests[0][0], "/mine")

    def test_no_request_waits_for_a_collector(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:  # It takes connections, and says nothing.
            self.serve(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{silent.getsockname()[1]}", OTEL_BSP_MAX_QUEUE_SIZE="4",
                       OTEL_BSP_MAX_EXPORT_BATCH_SIZE="2")
            start = time.monotonic()
            for _ in range(20):
                self.assertEqual(self.request("/v1/models")[0], 200)
            self.assertLess(time.monotonic() - start, 5)
            metrics = self.request("/metrics")[1].decode()
            dropped = next(float(line.split()[1]) for line in metrics.splitlines() if line.startswith("saker_spans_dropped_total"))
            self.assertGreaterEqual(dropped, 10)
            start = time.monotonic()
            self.process.terminate()
            self.assertEqual(self.process.wait(20), 0)
            self.assertLess(time.monotonic() - start, 8)

    def test_spans_of_the_end_are_sent(self):
        collector = self.collector()
        self.serve(OTEL_EXPORTER_OTLP_ENDPOINT=collector.address, OTEL_BSP_SCHEDULE_DELAY="60000")
        self.request("/v1/models")
        self.process.terminate()
        self.assertEqual(self.process.wait(20), 0)
        self.assertEqual([span["name"] for span in collector.spans], ["GET /v1/models"])

    def test_collectors_that_refuse_do_no_harm(self):
        collector = self.collector(status=400)
        self.serve(OTEL_EXPORTER_OTLP_ENDPOINT=collector.address)
        self.request("/v1/models")
        self.wait_for(lambda: b"\nsaker_spans_dropped_total 1" in self.request("/metrics")[1])

    def test_no_variable_no_spans(self):
        collector = self.collector()
        for more in ({"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}):
            self.serve(OTEL_EXPORTER_OTLP_ENDPOINT=collector.address, **more)
            self.assertIsNone(self.send(CHAT, BODY, {}).getheader("traceparent"))
            self.assertNotIn(b"saker:spans", self.request("/metrics")[1])
            self.process.terminate()
            self.process.wait(20)
        self.assertEqual(collector.requests, [])

    def test_wrong_variables(self):
        for name, value in (("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
                            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "secret"), ("OTEL_TRACES_SAMPLER", "jaeger"), ("OTEL_BSP_MAX_QUEUE_SIZE", "0")):
            with unittest.mock.patch.dict(os.environ, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", name: value}):
                self.fails("serve", DEMO, "--port", "0", says=name)


if __name__ == "__main__":
    unittest.main()
