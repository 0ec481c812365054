"""A node and its load, for the scripts of this folder."""
import json
import pathlib
import re
import signal
import subprocess
import time
import urllib.request

START_S = 10
STOP_S = 5


class Node:
    """A running sluice; its address is told by its output."""

    def __init__(self, bin_dir, folder, name, options):
        self.name = name
        self.output = pathlib.Path(folder, name + ".out")
        self.log = pathlib.Path(folder, name + ".log")
        self.process = subprocess.Popen(
            [f"{bin_dir}/sluice", "run", "--listen-address=127.0.0.1", "--tcp-port=0",
             "--cluster-id=66", "--shard=0", "--ip-colocation-limit=0", "--log-level=NOTICE",
             *options],
            stdout=self.output.open("w"), stderr=self.log.open("w"))
        end = time.monotonic() + START_S
        while not re.search("^READY", self.output.read_text(), re.M):
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{name} did not start:\n{self.log.read_text()}")
            time.sleep(0.05)
        self.address = re.search("^LISTEN (.*)", self.output.read_text(), re.M).group(1)

    def memory_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+)", status, re.M).group(1)) / 1024

    def stop(self):
        """Seconds that it took, and the exit status."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout=4 * STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        return time.monotonic() - began, status


def read_metrics(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=STOP_S) as answer:
        return answer.read().decode()


def ledgers(text):
    """{stage: {outcome: {reason: count}}} of sluice_stage_messages_total and what is held."""
    stages = {}
    for labels, value in re.findall(r"^sluice_stage_messages_total\{(.*?)\} (\S+)", text, re.M):
        label = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        reasons = stages.setdefault(label["stage"], {}).setdefault(label["outcome"], {})
        reasons[label["reason"]] = int(float(value))
    return stages


def open_ledgers(stages):
    """Stages whose sums differ. Asked after everything has settled: nothing is held any more."""
    bad = {}
    for stage, outcomes in stages.items():
        sums = {outcome: sum(reasons.values()) for outcome, reasons in outcomes.items()}
        received = sums.pop("received", 0)
        if received != sum(sums.values()):
            bad[stage] = {"received": received, **sums}
    return bad


def flood(bin_dir, options):
    """What tools/flood says of a run."""
    command = [f"{bin_dir}/flood", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}") from None
