"""Captures what a vLLM publishes and answers about chats with images.

    python capture.py model FOLDER ../../models/tiny-llama     makes the model's files
    vllm serve FOLDER ARGUMENTS OF engine.json
    python capture.py record http://127.0.0.1:8100 tcp://127.0.0.1:5557

The model is Qwen2-VL's code with a tokenizer of our own, 4 tokens more for images, and random
weights. The images are drawn here. Of each request the render endpoint is asked first.
"""
import base64, binascii, json, os, struct, sys, threading, time, urllib.error, urllib.request, zlib


def model(folder, llama):
    os.makedirs(folder, exist_ok=True)

    def write(name, value):
        with open(os.path.join(folder, name), "w") as f:
            json.dump(value, f, indent=1)

    def read(name):
        with open(os.path.join(llama, name)) as f:
            return json.load(f)

    tokenizer = read("tokenizer.json")
    for i, name in enumerate(["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]):
        tokenizer["added_tokens"].append({"id": 2048 + i, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True})
    write("tokenizer.json", tokenizer)
    config = read("tokenizer_config.json")
    text = "{%- if p.type == 'text' %}{{ p.text }}"
    assert text in config["chat_template"]
    config["chat_template"] = config["chat_template"].replace(text, text + "{%- elif p.type in ['image', 'image_url'] %}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}")
    write("tokenizer_config.json", dict(config, processor_class="Qwen2VLProcessor"))
    pixels = {"processor_class": "Qwen2VLProcessor", "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2, "min_pixels": 28 * 28, "max_pixels": 28 * 28 * 100, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    write("preprocessor_config.json", dict(pixels, image_processor_type="Qwen2VLImageProcessor"))
    write("video_preprocessor_config.json", dict(pixels, video_processor_type="Qwen2VLVideoProcessor"))
    write("generation_config.json", read("generation_config.json"))
    write("config.json", dict(
        read("config.json"), architectures=["Qwen2VLForConditionalGeneration"], model_type="qwen2_vl", vocab_size=2064, use_sliding_window=False,
        rope_scaling={"type": "mrope", "mrope_section": [4, 6, 6]}, vision_start_token_id=2048, vision_end_token_id=2049, vision_token_id=2050, image_token_id=2050, video_token_id=2051,
        vision_config={"model_type": "qwen2_vl", "depth": 1, "embed_dim": 64, "hidden_size": 64, "mlp_ratio": 2, "num_heads": 2, "in_channels": 3, "in_chans": 3, "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "temporal_patch_size": 2, "hidden_act": "quick_gelu"}))


def image(color, across=4, down=4):
    """A PNG of one color, of across x down tokens."""
    width, height = 28 * across, 28 * down
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", binascii.crc32(kind + data))
    row = b"\0" + bytes(color) * width
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(row * height, 9)) + chunk(b"IEND", b"")
    return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(png).decode()}}


RED, GREEN, BLUE, GREY = (200, 30, 30), (30, 200, 30), (30, 30, 200), (90, 90, 90)
LONG = "The harbour lies in the north of the town, behind the old mill and the station, and ships of three lines call there on every day of the week but Sunday. "


def text(s):
    return {"type": "text", "text": s}


def user(*parts):
    return {"role": "user", "content": list(parts)}


def chat(*messages, **more):
    return dict({"model": "tiny", "messages": list(messages), "max_tokens": 2, "temperature": 0, "return_token_ids": True}, **more)


def cases():
    ask = text("What is to be seen here, in a few words?")
    yield "text", chat(user(text(LONG)))
    for name, color in [("red", RED), ("red again", RED), ("green", GREEN), ("green again", GREEN)]:
        yield name, chat(user(text(LONG), image(color), ask))
    yield "red, another question", chat(user(text(LONG), image(RED), text("Which colour is it that one sees most of, and where?" + LONG)))
    yield "red first of all", chat(user(image(RED), text(LONG), ask))
    yield "red first of all again", chat(user(image(RED), text(LONG), ask))
    yield "green first of all", chat(user(image(GREEN), text(LONG), ask))
    for n in range(1, 9):  # the image moves over the border of a block
        yield f"moved by {n}", chat(user(text("so " * n), image(BLUE, 3, 3), text(LONG)))
    for n in (3, 3, 7):
        yield f"moved by {n} again", chat(user(text("so " * n), image(BLUE, 3, 3), text(LONG)))
    for a, b in [(RED, GREEN), (RED, GREEN), (RED, BLUE), (GREEN, RED), (RED, RED), (RED, RED)]:
        yield f"two, {a} {b}", chat(user(image(a, 1, 2), image(b, 2, 1), text(LONG), image(a), ask))
    for color in (GREY, GREY, RED):
        yield f"large {color}", chat(user(text("Look."), image(color, 10, 10), ask))
    history = [user(text(LONG), image(RED), ask), {"role": "assistant", "content": "A red square."}]
    yield "second turn", chat(*history, user(text("And here?"), image(GREEN)))
    yield "second turn, another image", chat(*history, user(text("And here?"), image(BLUE)))
    yield "third turn", chat(*history, user(text("And here?"), image(GREEN)), {"role": "assistant", "content": "A green one."}, user(text("Thank you. " + LONG)))
    yield "third turn again", chat(*history, user(text("And here?"), image(GREEN)), {"role": "assistant", "content": "A green one."}, user(text("Thank you. " + LONG)))
    for salt in ("a", "a", "b"):
        yield f"salt {salt}", chat(user(image(RED), text(LONG)), cache_salt=salt)
    yield "no salt", chat(user(image(RED), text(LONG)))
    named = lambda color, name: dict(image(color), uuid=name)
    for color, name in [(RED, "mine"), (RED, "mine"), (RED, "yours")]:  # the client names it
        yield f"named {name}", chat(user(text(LONG), named(color, name), ask))
    yield "text beside images", chat(user(text(LONG)))
    for i in range(8):  # more than the pool holds
        yield f"many {i}", chat(user(text(f"Number {i}. "), image((i * 20, 9, 9), 10, 10), text(LONG * 3), image((9, i * 20, 9), 10, 10), text(LONG * 2)))
    for i in (0, 5, 7):
        yield f"many {i} again", chat(user(text(f"Number {i}. "), image((i * 20, 9, 9), 10, 10), text(LONG * 3), image((9, i * 20, 9), 10, 10), text(LONG * 2)))
    yield "red at the end", chat(user(text(LONG), image(RED), ask))


def record(base, events):
    import msgspec, zmq
    socket = zmq.Context().socket(zmq.SUB)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.connect(events)
    frames = []

    def listen():
        while True:
            topic, seq, payload = socket.recv_multipart()
            frames.append({"t": time.time(), "frames": 3, "topic": topic.decode(), "seq": int.from_bytes(seq, "big"), "payload_hex": payload.hex()})

    threading.Thread(target=listen, daemon=True).start()
    time.sleep(1)

    def post(path, body):
        request = urllib.request.Request(base + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as e:
            return e.code, json.load(e)

    requests = []
    for i, (tag, body) in enumerate(cases(), 1):
        _, rendered = post("/v1/chat/completions/render", dict(body, mm_payload="none"))
        row = {"id": i, "tag": tag, "t": time.time()}
        row["batches_before"] = sum(msgspec.msgpack.decode(bytes.fromhex(f["payload_hex"]))[0] < row["t"] for f in frames)
        status, reply = post("/v1/chat/completions", body)
        row.update(t_end=time.time(), path="/v1/chat/completions", body=body, status=status)
        if status == 200:
            usage = reply["usage"]
            row.update(token_ids=reply["prompt_token_ids"], prompt_tokens=usage["prompt_tokens"], cached_tokens=(usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0))
            row["render"] = {"token_ids": rendered["token_ids"], "features": rendered["features"]}
        else:
            row["error"] = reply
        requests.append(row)
        print(tag, status, row.get("prompt_tokens"), row.get("cached_tokens"), flush=True)
        time.sleep(0.5)
    for name, rows in [("frames.jsonl", frames), ("requests.jsonl", requests)]:
        with open(name, "w") as f:
            for row in rows:
                f.write(json.dumps(row, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    {"model": model, "record": record}[sys.argv[1]](*sys.argv[2:])
