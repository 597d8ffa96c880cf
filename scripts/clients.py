"""Clients that chat with a server until they are told to stop: python3 clients.py
URL NUMBER. Few system prompts, some asked for far more often than others, each with
questions of its own behind it."""

import json
import random
import signal
import sys
import threading
import time
import urllib.request

url, number = sys.argv[1], int(sys.argv[2])
words = random.Random(1)
prompts = [" ".join(words.choices(("queue", "block", "engine", "token", "prefix"), k=4000)) for _ in range(24)]
weights = [1 / (i + 1) for i in range(len(prompts))]


def chat(client: int) -> None:
    draw = random.Random(client)
    while True:
        question = " ".join(str(draw.randrange(10000)) for _ in range(40))
        body = {"model": "sim", "max_tokens": 24, "stream": True, "messages": [
            {"role": "system", "content": draw.choices(prompts, weights)[0]}, {"role": "user", "content": question}]}
        request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            answer.read()
        time.sleep(draw.expovariate(8))


for client in range(number):
    threading.Thread(target=chat, args=(client,), daemon=True).start()
signal.pause()
