"""A card encoder on paho-mqtt (docs/encoder-protocol.md), as short as one can be: its cards are always there and its
journal is its memory, so after a restart it is a new encoder. Prints what it does; ends with standard input, if it has one.

    encoder.py ID ENDPOINT CERTIFICATE KEY ANCHOR
"""

import json
import os
import sys
import threading
import urllib.parse
import uuid

import paho.mqtt.client as mqtt

encoder_id, endpoint, certificate, key, anchor = sys.argv[1:]
topic = lambda name: f"enc/{encoder_id}/{name}"
boot, journal, session = (str(uuid.uuid4()) for _ in range(3))
unacknowledged = []
jobs = {}
seq = 0
epoch = 0

# paho-mqtt 2 asks which signatures callbacks have; version 1 knows only one.
versions = getattr(mqtt, "CallbackAPIVersion", None)
client = mqtt.Client(*([versions.VERSION1] if versions else []), client_id=encoder_id, clean_session=True)


def report(channel, content):
    global seq
    seq += 1
    message = (topic(f"up/{channel}"), {"boot": boot, "seq": seq, **content})
    unacknowledged.append(message)
    send(message)


def send(message):
    client.publish(message[0], json.dumps(message[1]), qos=1)


def connected(_client, _data, _flags, code):
    print("connected" if code == 0 else f"refused {code}", flush=True)
    client.subscribe(topic("down/#"), qos=1)


def subscribed(_client, _data, _mid, granted):
    assert granted[0] == 1, granted
    for message in list(unacknowledged):
        send(message)
    report("status", {"session": session, "online": True, "journal": journal,
                      "apps": [{"name": "independent", "version": "1"}]})


def received(_client, _data, packet):
    global epoch
    message = json.loads(packet.payload)
    if message["epoch"] < epoch:
        return
    epoch = message["epoch"]
    channel = packet.topic.rsplit("/", 1)[1]
    if channel == "ack":
        unacknowledged[:] = [m for m in unacknowledged if m[1]["boot"] != message["boot"] or m[1]["seq"] > message["seq"]]
    elif channel == "write":
        write(message)
    elif channel == "cancel":
        answer(message["jobId"])
    print(channel, flush=True)


def answer(job_id):
    entries = [{"keyId": k, "status": s} for k, s in jobs.get(job_id, {}).items()]
    report("job", {"jobId": job_id, "known": job_id in jobs, "entries": entries})


def write(message):
    job_id = message["jobId"]
    is_new = job_id not in jobs
    job = jobs.setdefault(job_id, {})
    answer(job_id)
    if not is_new:
        return
    for entry in message["data"]:
        for status in ("started", "cardRequested", "cardDetected", "writing", "written"):
            job[entry["keyId"]] = status
            report("progress", {"jobId": job_id, "keyId": entry["keyId"], "status": status})


def end_with_standard_input():
    if sys.stdin is None:
        return
    sys.stdin.read()
    print("ends, as standard input has; to go on, keep it open, or close it before the start with <&-",
          file=sys.stderr, flush=True)
    os._exit(0)


client.on_connect, client.on_subscribe, client.on_message = connected, subscribed, received
client.will_set(topic("up/status"), json.dumps({"online": False, "session": session}), qos=1)
client.tls_set(ca_certs=anchor, certfile=certificate, keyfile=key)
threading.Thread(target=end_with_standard_input, daemon=True).start()
address = urllib.parse.urlsplit(endpoint)
client.connect(address.hostname, address.port, keepalive=20)
client.loop_forever()
