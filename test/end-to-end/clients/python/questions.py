"""What the drivers share: a JSON line with a question in, a JSON line with its answer out."""

import json
import sys

WEATHER = json.loads(sys.argv[1])
PLAN = json.loads(sys.argv[2])

# Turns as the packages themselves have them, to be sent back as they are.
natives = []


def keep(native):
    natives.append(native)
    return len(natives) - 1


def status_of(error):
    numbers = (getattr(error, name, None) for name in ("status_code", "code"))
    return next((number for number in numbers if isinstance(number, int)), None)


def answer(surfaces, asked):
    try:
        reply = surfaces[asked["surface"]](asked["options"], asked["question"])
        if reply is not None and asked["question"].get("structured"):
            reply["parsed"] = json.loads(reply["text"])
        return {"reply": reply}
    except Exception as error:  # Every failure is an answer here.
        status = status_of(error) or status_of(error.__cause__)
        return {"failure": {"status": status, "name": type(error).__name__, "message": str(error)}}


def serve(surfaces):
    for line in sys.stdin:
        print(json.dumps(answer(surfaces, json.loads(line))), flush=True)
