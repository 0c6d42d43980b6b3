"""Proxies that cannot be tested, each in one way: the plugin must say so in time, and leave no process.

python bad_proxy.py never|deaf|garbage|exits|http10|always500|post500|hangs|drips|children|stubborn|starting|noget|nomodels|busy
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

way = sys.argv[1]
begun = time.monotonic()
refused = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0" if way == "http10" else "HTTP/1.1"

    def do_GET(self) -> None:
        if way == "never":
            time.sleep(60)
        body = b'{"object":"list","data":[]}'
        status = 500 if way == "always500" or (way == "nomodels" and self.path == "/v1/models") else 200
        if way == "starting" and self.path == "/readyz" and time.monotonic() < begun + 1.5:
            status = 503
        self.send_response(501 if way == "noget" and self.command == "GET" else status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        if way == "hangs":
            time.sleep(60)
        if way == "post500" or (way == "starting" and time.monotonic() < begun + 1.5):
            self.send_error(500)
            return
        global refused
        if way == "busy" and (refused := refused + 1) % 3:
            self.send_response(429)
            self.send_header("retry-after-ms", "50")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if way == "drips":  # an answer that never ends, and is never silent for long
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            while True:
                self.wfile.write(b": still here\n\n")
                time.sleep(0.05)
        self.do_GET()

    def log_message(self, *args: object) -> None:
        pass


if way == "exits":
    sys.stderr.write("no database\n")
    sys.exit(3)
if way == "deaf":
    time.sleep(600)
if way == "garbage":
    listening = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
    while True:
        with listening.accept()[0] as connection:
            connection.recv(1 << 16)
            connection.sendall(b"220 smtp.example ready\r\n")
if way == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if way == "children":
    code = "import time; time.sleep(600)  # " + __file__
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    subprocess.Popen([sys.executable, "-c", code])
ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
