"""A real libzmq subscriber and replay client: prints what arrives, one line per message.

usage: subscriber.py (connect|bind) ADDR TOPIC COUNT | subscriber.py replay ADDR START
"""
import sys

import zmq

mode, addr = sys.argv[1], sys.argv[2]
ctx = zmq.Context()
if mode == "replay":
    s = ctx.socket(zmq.DEALER)
    s.setsockopt(zmq.RCVTIMEO, 10000)
    s.connect("tcp://" + addr)
    s.send_multipart([b"", int(sys.argv[3]).to_bytes(8, "big")])
    while True:
        frames = s.recv_multipart()
        print(" ".join(f.hex() or "-" for f in frames), flush=True)
        if frames[-1] == b"" and frames[-2] == b"\xff" * 8:
            break
else:
    s = ctx.socket(zmq.SUB)
    s.setsockopt(zmq.RCVTIMEO, 10000)
    # libzmq's own heartbeat: a publisher that does not answer PING is cut.
    s.setsockopt(zmq.HEARTBEAT_IVL, 100)
    s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 300)
    if mode == "bind":
        port = s.bind_to_random_port("tcp://127.0.0.1")
        print("port", port, flush=True)
    else:
        s.connect("tcp://" + addr)
    s.subscribe(sys.argv[3].encode())
    for _ in range(int(sys.argv[4])):
        print(" ".join(f.hex() or "-" for f in s.recv_multipart()), flush=True)
ctx.destroy(linger=0)
