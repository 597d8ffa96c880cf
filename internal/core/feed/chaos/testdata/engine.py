"""An engine's prompt cache and event sockets, made with real libzmq and driven
by lines on stdin. It knows the truth: what its cache holds.

usage: engine.py KEY=VALUE ...

  seed=N                    of its requests
  prompts=FROM:TO           the prompts it is asked for; all of them: count=N
  count=N blocks=N trunk=N apps=N size=N
                            prompt p has N blocks of size tokens, the first `trunk`
                            of them shared by all prompts of app p % apps
  capacity=N                blocks its cache holds
  events=bind:ADDR          PUB socket; or connect:ADDR, which dials
  hwm=N                     of the PUB socket, whose kernel buffer is then small too
  replay=HOST:PORT          ROUTER socket, none without
  buffer=N                  batches kept for replay
  replayhwm=N               of the ROUTER socket
  omit=N                    leaves out one of N replies, the end marker too
  topic=no                  replies without topic, as vLLM 0.23.0 and before
  events_as=map             vLLM 0.32.0; or array, as vLLM 0.12.0
  http=HOST:PORT            a metrics page, none without
  started=no                which does not tell when the process started

commands, each answered by one line:
  open       binds or connects the sockets -> "ok" or "busy"
  close      closes them; the process and its numbering go on -> "ok"
  run N      publishes N batches -> "ok"
  freeze PID N  the same while another process is stopped -> "ok"
  tick       publishes a batch without events -> "SEQ"
  lie HOW    its replay port is from now on: silent, endless (the oldest batch again and
             again), foreign (of an engine that is 50 batches ahead), absurd (one huge
             number), or none of these: honest -> "ok"
  truth      -> "OLDEST RESIDENT DEPTH..." oldest batch in the replay buffer, blocks
             held, then per prompt how many blocks it holds from the start
"""
import collections
import hashlib
import http.server
import os
import random
import signal
import sys
import threading
import time

import msgpack
import zmq

opts = dict(arg.split("=", 1) for arg in sys.argv[1:])
number = lambda key: int(opts[key])  # noqa: E731
rng = random.Random(number("seed"))
END = b"\xff" * 8


def chain(p):
    """The (hash, parent hash, tokens) of each block of a prompt."""
    out, parent = [], None
    for i in range(number("blocks")):
        owner = p % number("apps") if i < number("trunk") else 1000 + p
        tokens = [owner, i] + [7] * (number("size") - 2)
        digest = hashlib.sha256(repr((parent, tokens)).encode()).digest()
        own = int.from_bytes(digest[-8:], "big")
        out.append((own, parent, tokens))
        parent = own
    return out


chains = [chain(p) for p in range(number("count"))]


def stored(blocks):
    hashes = [b[0] for b in blocks]
    tokens = [t for b in blocks for t in b[2]]
    if opts["events_as"] == "array":
        return ["BlockStored", hashes, blocks[0][1], tokens, number("size"), None, "GPU"]
    return {
        "type": "BlockStored", "block_hashes": hashes, "parent_block_hash": blocks[0][1], "token_ids": tokens,
        "block_size": number("size"), "lora_id": None, "medium": "GPU", "lora_name": None,
        "extra_keys": [None] * len(hashes), "group_idx": 0, "kv_cache_spec_kind": "full_attention",
    }


def removed(own):
    if opts["events_as"] == "array":
        return ["BlockRemoved", [own], "GPU"]
    return {"type": "BlockRemoved", "block_hashes": [own], "medium": "GPU", "group_idx": 0}


def cleared():
    return ["AllBlocksCleared"] if opts["events_as"] == "array" else {"type": "AllBlocksCleared"}


cache = collections.OrderedDict()  # hash -> None, least recently used first


def step():
    """The events of one engine step."""
    if rng.random() < 0.0005:
        cache.clear()
        return [cleared()]
    events = []
    for _ in range(rng.randint(1, 3)):
        blocks = chains[rng.randrange(*map(int, opts["prompts"].split(":")))]
        blocks = blocks[: rng.randint(1, len(blocks))]
        missing = [b[0] not in cache for b in blocks]
        for own, _, _ in reversed(blocks):  # so that tails leave first, as vLLM's do
            cache[own] = None
            cache.move_to_end(own)
        leave = max(0, len(cache) - number("capacity"))
        events += [removed(cache.popitem(last=False)[0]) for _ in range(leave)]
        if rng.random() < 0.05:  # one leaves from the middle of a prompt
            own = rng.choice(list(cache))
            if all(own != b[0] for b in blocks):
                del cache[own]
                events.append(removed(own))
        start = None  # of a stretch of missing blocks
        for i, gone in enumerate(missing + [False]):
            if gone and start is None:
                start = i
            elif not gone and start is not None:
                events.append(stored(blocks[start:i]))
                start = None
    return events


context = zmq.Context()
pub = router = None
buffer = collections.deque(maxlen=number("buffer"))  # (sequence, payload)
sequence = -1


def open_sockets():
    global pub, router
    try:
        if "replay" in opts:
            router = context.socket(zmq.ROUTER)
            router.set(zmq.SNDHWM, int(opts.get("replayhwm", 1000)))
            router.bind("tcp://" + opts["replay"])
        pub = context.socket(zmq.PUB)
        pub.set(zmq.SNDHWM, int(opts.get("hwm", 100000)))
        if "hwm" in opts:
            pub.set(zmq.SNDBUF, 16384)
        pub.set(zmq.RECONNECT_IVL, 20)
        how, addr = opts["events"].split(":", 1)
        (pub.bind if how == "bind" else pub.connect)("tcp://" + addr)
    except zmq.ZMQError:
        close_sockets()
        return "busy"
    return "ok"


def close_sockets():
    global pub, router
    for s in filter(None, (pub, router)):
        s.close(linger=0)
    pub = router = None


def publish(events):
    global sequence
    sequence += 1
    payload = msgpack.packb([time.time(), events, 0])
    buffer.append((sequence, payload))
    if buffer[0][0] == 1:
        buffer.popleft()  # a replay that begins at 1 means an engine that numbers from 1
    if pub is not None:
        pub.send_multipart((b"kv", sequence.to_bytes(8, "big"), payload))
    if router is not None:
        replay()


def run(n):
    while n > 0:
        events = step()
        if events:
            publish(events)
            n -= 1


lie = "honest"


def replies(start):
    """What a replay consists of, by the way the port lies: (sequence, payload), -1 for the end."""
    honest = [(seq, payload) for seq, payload in buffer if seq >= start]
    if lie == "silent":
        return
    if lie == "endless":
        until = time.time() + 2.5  # the engine has other things to do after that
        while buffer and time.time() < until:
            yield buffer[0]
            time.sleep(0.001)
        return
    if lie == "foreign":
        honest = [(seq, msgpack.packb([time.time() + 1, [], 0])) for seq in range(start, sequence + 50)]
    if lie == "absurd":
        honest = [(2**64 - 6, payload) for _, payload in honest[:1]]
    yield from honest
    yield -1, b""


omissions = random.Random(number("seed"))


def replay():
    """Answers one request, if there is one, the way vLLM's publisher does."""
    if not router.poll(0):
        return
    client, _, start = router.recv_multipart()
    first = True
    for seq, payload in replies(int.from_bytes(start, "big")):
        mark = END if seq < 0 else seq.to_bytes(8, "big")
        # libzmq loses what stands behind a full pipe, never the first reply.
        if first or "omit" not in opts or omissions.randrange(number("omit")):
            topic = () if opts.get("topic") == "no" else (b"" if seq < 0 else b"kv",)
            router.send_multipart((client, b"", *topic, mark, payload))
        first = False


def depth(blocks):
    held = [b[0] in cache for b in blocks]
    return held.index(False) if False in held else len(held)


def command(word, *args):
    if word == "open":
        return open_sockets()
    if word == "close":
        close_sockets()
    elif word == "run":
        run(int(args[0]))
    elif word == "freeze":
        try:
            os.kill(int(args[0]), signal.SIGSTOP)
            run(int(args[1]))
        finally:
            os.kill(int(args[0]), signal.SIGCONT)
    elif word == "lie":
        global lie
        lie = args[0]
    elif word == "tick":
        publish([])
        return str(sequence)
    elif word == "truth":
        return " ".join(map(str, [buffer[0][0] if buffer else 0, len(cache), *map(depth, chains)]))
    return "ok"


START = time.time()


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path != "/metrics":
            return self.send_error(404)
        text = "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0\n"
        if opts.get("started") != "no":
            text += f"process_start_time_seconds {START}\n"
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


if "http" in opts:
    host, port = opts["http"].rsplit(":", 1)
    page = http.server.ThreadingHTTPServer((host, int(port)), Page)
    threading.Thread(target=page.serve_forever, daemon=True).start()

# stdin reaches the loop through a socket, so that one poll serves everything.
pipe = context.socket(zmq.PULL)
pipe.bind("inproc://stdin")


def forward():
    push = context.socket(zmq.PUSH)
    push.connect("inproc://stdin")
    for line in sys.stdin:
        push.send_string(line)
    os._exit(0)  # the test has ended or died


threading.Thread(target=forward, daemon=True).start()
while True:
    poller = zmq.Poller()
    for s in filter(None, (pipe, router)):
        poller.register(s, zmq.POLLIN)
    ready = dict(poller.poll())
    if pipe in ready:
        print(command(*pipe.recv_string().split()), flush=True)
    if router is not None:
        replay()
