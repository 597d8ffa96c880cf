"""A publisher made with real libzmq, driven by lines on stdin.

usage: publisher.py (bind|connect) HOST:PORT [replay HOST:PORT] [heartbeat MS] [patience MS] [topic no]

With a heartbeat it cuts a subscriber that shows no sign of life for as long as
its patience after a PING.

It serves the replay socket the way vLLM's publisher thread does: between two
commands, the whole buffer at once, with a ROUTER of default high-water marks.
With "topic no" the replies have none, as those of vLLM 0.23.0.
The live socket is an XPUB, which in libzmq is PUB with the subscriptions shown.

commands, each answered by one line:
  addr                     -> "addr HOST:PORT"
  subscribed               -> waits for a subscription, then "ok"
  send TOPIC SEQ HEX       -> publishes and records ("-" = empty topic)
  record N HEX             -> records N batches, numbered from 0, without publishing
  frames FILE FROM TO      -> publishes and records lines FROM..TO-1 of a frames.jsonl
  frames FILE FROM TO RANK -> of these, those of one rank's socket
"""
import json
import os
import sys
import threading

import zmq

END = b"\xff" * 8
args = sys.argv[1:]
how, addr = args[0], args[1]
opts = dict(zip(args[2::2], args[3::2]))
ctx = zmq.Context()
pub = ctx.socket(zmq.XPUB)
pub.set_hwm(100000)
if "heartbeat" in opts:
    pub.setsockopt(zmq.HEARTBEAT_IVL, int(opts["heartbeat"]))
    pub.setsockopt(zmq.HEARTBEAT_TIMEOUT, int(opts["patience"]))
(pub.bind if how == "bind" else pub.connect)("tcp://" + addr)
router = None
if "replay" in opts:
    router = ctx.socket(zmq.ROUTER)
    router.bind("tcp://" + opts["replay"])
buffer = []

# stdin reaches the loop through a socket, so that one poll serves everything.
pipe = ctx.socket(zmq.PULL)
pipe.bind("inproc://stdin")


def forward():
    push = ctx.socket(zmq.PUSH)
    push.connect("inproc://stdin")
    for line in sys.stdin:
        push.send_string(line)
    os._exit(0)  # the test has ended or died


threading.Thread(target=forward, daemon=True).start()


def reply(text):
    print(text, flush=True)


def send(topic, seq, payload):
    pub.send_multipart([topic, seq.to_bytes(8, "big"), payload])
    buffer.append((topic, seq, payload))


def command(words):
    if words[0] == "addr":
        reply("addr " + pub.getsockopt(zmq.LAST_ENDPOINT).decode().rstrip("\0").removeprefix("tcp://"))
    elif words[0] == "subscribed":
        while pub.recv()[:1] != b"\x01":
            pass
        reply("ok")
    elif words[0] == "send":
        send(b"" if words[1] == "-" else words[1].encode(), int(words[2]), bytes.fromhex(words[3]))
        reply("ok")
    elif words[0] == "record":
        payload = bytes.fromhex(words[2])
        buffer.extend((b"", i, payload) for i in range(int(words[1])))
        reply("ok")
    elif words[0] == "frames":
        with open(words[1]) as f:
            for i, line in enumerate(f):
                if int(words[2]) <= i < int(words[3]):
                    m = json.loads(line)
                    if len(words) > 4 and m["rank_socket"] != int(words[4]):
                        continue
                    send(m["topic"].encode(), m["seq"], bytes.fromhex(m["payload_hex"]))
        reply("ok")


poller = zmq.Poller()
poller.register(pipe, zmq.POLLIN)
if router is not None:
    poller.register(router, zmq.POLLIN)
while True:
    ready = dict(poller.poll())
    if pipe in ready:
        command(pipe.recv_string().split())
    if router in ready:
        frames = router.recv_multipart()
        if len(frames) != 3:
            continue
        client, _, start = frames
        for topic, seq, payload in [*buffer, (b"", -1, b"")]:
            number = END if seq < 0 else seq.to_bytes(8, "big")
            if number >= start:
                named = () if opts.get("topic") == "no" else (topic,)
                router.send_multipart((client, b"", *named, number, payload))
