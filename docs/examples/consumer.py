#!/usr/bin/env python3
"""Reads events of Gatehouse, one CloudEvent in JSON on each line of its input, and writes each that is new to its output:

    mosquitto_sub -h broker -q 1 -i my-consumer -c -t 'gatehouse/1/#' -F %p | python3 consumer.py state.jsonl

A repeat is left out: an event is known by (source, id). `sequence` counts the events of an encoder without a hole; a hole is
missing until a gap record explains it. What was seen is in the state file, on the disk before the event is written out.
At the end of the input it says on stderr what is missing, and ends with 1 if anything is.
"""
import json
import os
import sys

GAP = "gatehouse.events.gap.v1"

seen = set()
newest = {}  # by source: the highest sequence
missing = {}  # by source: those below it that are missing


def note(event):
    source = event["source"]
    seen.add((source, event["id"]))
    if event["type"] == GAP:
        data = event["data"]
        first, last = data["firstSequence"], data["lastSequence"]
        encoder = f"{source}/encoders/{data['encoderId']}"
        missing.setdefault(encoder, set()).difference_update(range(first, last + 1))
        # Of what is not seen yet: it will not come.
        if encoder in newest and newest[encoder] + 1 >= first:
            newest[encoder] = max(newest[encoder], last)
    elif event.get("sequence") is not None:
        n = int(event["sequence"])
        holes = missing.setdefault(source, set())
        # The first one seen is where this consumer begins; after a restore or a takeover the gateway goes on at `sequencefrom`.
        before = newest.get(source, n)
        holes.update(range(max(before + 1, int(event.get("sequencefrom") or 0)), n))
        holes.discard(n)
        newest[source] = max(newest.get(source, 0), n)


def main(file):
    duplicates = 0
    if os.path.exists(file):
        with open(file, "r+b") as known:
            # A last line that was cut short by a crash was never written out.
            text = known.read()
            whole = text[: text.rfind(b"\n") + 1]
            known.truncate(len(whole))
            for line in whole.splitlines():
                note(json.loads(line))
    with open(file, "a", encoding="utf-8") as state:
        for line in sys.stdin:
            event = json.loads(line)
            if (event["source"], event["id"]) in seen:
                duplicates += 1
                continue
            names = ["source", "id", "type", "sequence", "sequencefrom"] + (["data"] if event["type"] == GAP else [])
            state.write(json.dumps({name: event.get(name) for name in names}) + "\n")
            state.flush()
            os.fsync(state.fileno())
            note(event)
            sys.stdout.write(line)
            sys.stdout.flush()
    holes = [{"source": s, "sequences": sorted(n)} for s, n in missing.items() if n]
    print(json.dumps({"events": len(seen), "duplicates": duplicates, "missing": holes}), file=sys.stderr)
    return 1 if holes else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: consumer.py STATE_FILE")
    sys.exit(main(sys.argv[1]))
