"""Ctrl-C ends embedding within half a second, with KeyboardInterrupt."""

import signal
import subprocess
import sys
import time

from tests.helpers.encoders import require_extra, save_bert
from tests.helpers.processes import wait_until_used

require_extra()

PROMPT = 0.5
"""What is promised, in seconds."""

MARGIN = 2.0
"""What a crowded machine may take to wake a process up."""

CHILD = """
import signal, sys, time
import longleaf as ll

signal.signal(signal.SIGINT, signal.default_int_handler)
encoder = ll.encoders.load(sys.argv[1])
print("ready", flush=True)
try:
    encoder.embed(["the cat " * 2000] * 100000, threads=2)
except KeyboardInterrupt:
    print(time.monotonic())
"""


def test_ctrl_c_stops_embedding_even_in_the_middle_of_a_long_text(tmp_path):
    folder = save_bert(tmp_path, layers=24, width=256, inner=1024, positions=1024)
    command = [sys.executable, "-c", CHILD, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        wait_until_used(child.pid, 0.5)
        begin = time.monotonic()
        child.send_signal(signal.SIGINT)
        end = float(child.communicate(timeout=60)[0])
    assert child.returncode == 0
    assert end - begin < PROMPT + MARGIN
