# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face hub on this machine, and the other host that its large files lie on.

Speaks what clients need: model information, file lists in pages, files with their commits and etags, redirects
of large ones, ranges, tokens, the error codes. What goes wrong is put into `faults`.

    python3 hub_server.py FOLDER    serves FOLDER as the model bench/model, for measuring; prints HF_ENDPOINT
"""
import collections
import hashlib
import http.server
import json
import pathlib
import re
import sys
import threading
import time
import urllib.parse

LARGE = 10_000  # Bytes from which on a file is one of git LFS.


class File:
    def __init__(self, content):
        self.path = content if isinstance(content, pathlib.Path) else None
        self.content = None if self.path else content
        self.size = self.path.stat().st_size if self.path else len(content)
        self.large = self.size >= LARGE
        sha256, sha1 = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % self.size)
        for piece in self.pieces(0):
            sha256.update(piece)
            sha1.update(piece)
        self.sha1 = sha1.hexdigest()
        self.sha256 = sha256.hexdigest()
        self.etag = self.sha256 if self.large else self.sha1

    def pieces(self, begin):
        if self.content is not None:
            yield self.content[begin:]
            return
        with self.path.open("rb") as file:
            file.seek(begin)
            while piece := file.read(1 << 20):
                yield piece

    def entry(self, name):
        entry = {"type": "file", "oid": self.sha1, "size": self.size, "path": name}
        if self.large:
            entry["lfs"] = {"oid": self.sha256, "size": self.size, "pointerSize": 135}
        return entry


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, hub, handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.hub = hub
        self.address = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # Clients that go away are what some tests are about.


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.do_GET()

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def refuse(self, status, code, message="", **headers):
        self.answer(status, b"{}", X_Error_Code=code, X_Error_Message=message, **headers)

    def next_fault(self, *names):
        """The fault that this request meets: the first of one of these names."""
        with self.server.hub.lock:
            for name in names:
                if self.command == "GET" and self.server.hub.faults[name]:
                    return self.server.hub.faults[name].pop(0)
        return {}

    def answered_by(self, fault):
        """Whether the fault was the whole answer."""
        time.sleep(fault.get("wait", 0))
        if "status" in fault:
            self.answer(fault["status"], b"no", **fault.get("headers", {}))
        elif fault.get("drop"):
            self.close_connection = True
        else:
            return False
        return True

    def send_file(self, file, fault, **headers):
        begin, end = 0, file.size
        wanted = self.headers.get("Range", "")
        has_range = wanted.startswith("bytes=") and not fault.get("ignore_range")
        if has_range:
            first, _, last = wanted[6:].partition("-")
            begin, end = int(first), min(int(last) + 1, file.size) if last else file.size
            if begin >= file.size:
                self.answer(416)
                return
        self.send_response(206 if has_range else 200)
        if has_range:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{file.size}")
        self.send_header("Content-Length", str(end - begin))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            self.send_bytes(file, begin, end, fault)

    def send_bytes(self, file, begin, end, fault):
        with self.server.hub.lock:
            self.server.hub.sent += end - begin
        if not fault and file.path:
            self.wfile.flush()
            with file.path.open("rb") as source:
                self.connection.sendfile(source, begin, end - begin)
            return
        content = b"".join(file.pieces(begin))[: end - begin]
        if "flip" in fault:
            content = bytearray(content)
            content[fault["flip"]] ^= 1
        sent = fault.get("cut", len(content))
        for start in range(0, sent, fault.get("piece", 1 << 20)):
            self.wfile.write(content[start : min(sent, start + fault.get("piece", 1 << 20))])
            time.sleep(fault.get("pause", 0))
        if sent < len(content):
            time.sleep(fault.get("stall", 0))
            self.close_connection = True


class HubHandler(Handler):
    def do_GET(self):
        hub = self.server.hub
        hub.note("hub", self)
        # Clients ask a proxy by the whole address.
        path, _, query = re.sub("^http://[^/]*", "", self.path).partition("?")
        parts = [urllib.parse.unquote(part) for part in path.strip("/").split("/")]
        api = parts[:2] == ["api", "models"]
        repo = "/".join(parts[2:4] if api else parts[:2])
        rest = parts[4:] if api else parts[2:]
        if self.answered_by(self.next_fault("api" if api else "hub:" + "/".join(rest[2:]))):
            return
        token = hub.tokens.get(repo)
        if repo not in hub.models or (token and self.headers.get("Authorization") != f"Bearer {token}"):
            self.refuse(401, "RepoNotFound", "Repository not found")
            return
        if repo in hub.gated:
            self.refuse(403, "GatedRepo", "Access to model is restricted")
            return
        model = hub.models[repo]
        revision = rest[1] if len(rest) > 1 else "main"
        commit = model["refs"].get(revision, revision)
        if commit not in model["commits"]:
            self.refuse(404, "RevisionNotFound", "Invalid rev id")
        elif not api:
            self.resolve(model["commits"][commit], commit, "/".join(rest[2:]))
        elif rest[:1] == ["tree"]:
            self.tree(model["commits"][commit], urllib.parse.parse_qs(query))
        else:
            info = {"_id": "1", "id": repo, "modelId": repo, "sha": commit, "private": False, "tags": [], "siblings": []}
            self.answer(200, json.dumps(info).encode())

    def tree(self, files, query):
        hub = self.server.hub
        entries = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": "folder"}]
        entries += [file.entry(name) for name, file in files.items()]
        entries = hub.change_entries(entries)
        begin = int(query.get("cursor", ["0"])[0])
        page = entries[begin : begin + hub.page_size]
        headers = {}
        if begin + hub.page_size < len(entries):
            address = f"{hub.next_page_host or hub.address}{self.path.split('?')[0]}"
            headers["Link"] = f'<{address}?recursive=true&expand=false&cursor={begin + hub.page_size}>; rel="next"'
        self.answer(200, json.dumps(page).encode(), **headers)

    def resolve(self, files, commit, name):
        hub = self.server.hub
        if name not in files:
            self.refuse(404, "EntryNotFound", "Entry not found", X_Repo_Commit=commit)
            return
        file = files[name]
        headers = {"X_Repo_Commit": commit, "ETag": f'"{file.etag}"', **hub.file_headers.get(name, {})}
        if not file.large:
            self.send_file(file, self.next_fault(name), **headers)
            return
        headers |= {"X_Linked_Etag": f'"{file.etag}"', "X_Linked_Size": str(file.size), **hub.file_headers.get(name, {})}
        headers["ETag"] = '"pointer"'
        self.answer(302, Location=f"{hub.cdn.address}/{file.sha256}?name={urllib.parse.quote(name)}&secret=1", **headers)


class OtherHandler(Handler):
    def do_GET(self):
        hub = self.server.hub
        hub.note("cdn", self)
        path, _, query = self.path.partition("?")
        name = urllib.parse.parse_qs(query)["name"][0]
        fault = self.next_fault(name)
        if not self.answered_by(fault):
            self.send_file(hub.large[path.strip("/")], fault, ETag='"other"')


class Hub:
    """Two servers that run until `close`."""

    def __init__(self):
        self.lock = threading.Lock()
        self.models = {}
        self.large = {}
        self.tokens = {}  # repo -> the token it wants
        self.gated = set()
        self.faults = collections.defaultdict(list)  # file ("hub:file" at the hub, "api") -> faults of coming GETs
        self.file_headers = {}  # file -> headers that the hub sends instead
        self.change_entries = lambda entries: entries
        self.next_page_host = None
        self.page_size = 1000
        self.sent = 0  # Bytes of files.
        self.requests = []  # (server, command, path, headers)
        self.cdn = Server(self, OtherHandler)
        self.server = Server(self, HubHandler)
        self.address = self.server.address

    def note(self, server, handler):
        with self.lock:
            self.requests.append((server, handler.command, handler.path, dict(handler.headers)))

    def asked(self, server, part=""):
        """Paths and headers of the GETs that `server` got."""
        with self.lock:
            return [(path, headers) for name, command, path, headers in self.requests
                    if name == server and command == "GET" and part in path]

    def add(self, repo, files, revision="main"):
        """A new commit of these files; the revision leads there."""
        commits = self.models.setdefault(repo, {"refs": {}, "commits": {}})
        made = {name: File(content) for name, content in files.items()}
        commit = hashlib.sha1(repr([(name, file.etag) for name, file in made.items()]).encode()).hexdigest()
        commits["commits"][commit] = made
        commits["refs"][revision] = commit
        self.large.update({file.sha256: file for file in made.values() if file.large})
        return commit

    def close(self):
        for server in (self.server, self.cdn):
            server.shutdown()
            server.server_close()


if __name__ == "__main__":
    served = Hub()
    folder = pathlib.Path(sys.argv[1])
    served.add("bench/model", {path.name: path for path in sorted(folder.iterdir())})
    print(f"HF_ENDPOINT={served.address}", flush=True)
    threading.Event().wait()
