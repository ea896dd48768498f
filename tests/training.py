"""Trainings that a guard watches: one counts its steps at once, one saves when it is asked to."""

# As the processes of a training do it: 60 steps and more, of ten seconds each.
COUNTS = """
import json, os
record = {"version": 1, "pid": os.getpid(), "rank": 0, "num_steps": 100, "span_s": 0.0, "blocks": [[230, 99]],
          "failure": None}
with open(os.path.join(os.environ["ADVISOR_STEPS_FOLDER"], "1.json"), "w") as file:
    json.dump(record, file)
"""
SAVES = """
import signal, sys
def save(*_):
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGUSR1, save)
"""
