"""Stands between loopctl and a model's server for scripts/live-check, and says what was seen on the wire.

    live_wire.py SERVER LOG [REQUESTS]

Prints its own address, passes every request on to SERVER (`http://host:port`), and writes one line for each to LOG.
After REQUESTS requests it is gone, and its port refuses.
"""

import http.client
import http.server
import json
import sys
import urllib.parse

server, log = urllib.parse.urlsplit(sys.argv[1]), sys.argv[2]
left = int(sys.argv[3]) if len(sys.argv) > 3 else None
RESULTS = ('"role": "tool"', '"type": "function_call_output"', '"type": "tool_result"')


def has(yes):
    return "yes" if yes else "no"


def describe(path, body):
    text = json.dumps(body)
    said = body.get("messages") or body.get("input") or []
    return (
        f"{path} stream={has(body.get('stream'))} messages={len(said)} tools={len(body.get('tools') or [])}"
        f" result={has(any(mark in text for mark in RESULTS))} schema={has('response_format' in body)}"
    )


class Wire(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        upstream = http.client.HTTPConnection(server.hostname, server.port, timeout=120)
        kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        upstream.request("POST", self.path, body, kept)
        reply = upstream.getresponse()
        self.send_response(reply.status)
        self.send_header("content-type", reply.headers["content-type"])
        self.end_headers()
        pieces = b""
        try:
            while piece := reply.read1(65536):
                self.wfile.write(piece)
                pieces += piece
        except ConnectionError:
            # Who asked is gone. The model has been asked all the same.
            self.close_connection = True
        upstream.close()
        events = sum(line.startswith(b"data:") for line in pieces.splitlines())
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{describe(self.path, json.loads(body))} status={reply.status} events={events}\n")

    def log_message(self, *_):
        pass


# One that is about to go answers before it does; only the other one may answer several at once.
kind = http.server.ThreadingHTTPServer if left is None else http.server.HTTPServer
listener = kind(("127.0.0.1", 0), Wire)
print(f"http://127.0.0.1:{listener.server_port}", flush=True)
if left is None:
    listener.serve_forever()
for _ in range(left or 0):
    listener.handle_request()
listener.server_close()
