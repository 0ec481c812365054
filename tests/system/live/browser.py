# SPDX-License-Identifier: MIT
"""A headless Chromium, driven over its debugging pipe (JSON messages that end with a NUL byte)."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time

SWITCHES = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-pipe",
]


def find():
    """The program, None when it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    def __init__(self, deadline_s=120):
        self.deadline = time.monotonic() + deadline_s
        self.profile = tempfile.mkdtemp(prefix="sluice-browser-")
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()
        # The browser reads its descriptor 3 and writes 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f"exec 3<&{to_read} 4>&{from_write}; exec \"$0\" \"$@\"", find(), *SWITCHES,
             f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=(to_read, from_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.write_fd, self.read_fd = to_write, from_read
        self.bytes = b""
        self.number = 0
        self.events = []
        self.session = None

    def _receive(self):
        while b"\0" not in self.bytes:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_fd], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self.read_fd, 1 << 16)
            if not chunk:
                raise RuntimeError("the browser has ended")
            self.bytes += chunk
        message, self.bytes = self.bytes.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.write_fd, data):]
        while True:
            message = self._receive()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def open(self, url, width, height, scale=1, mobile=False, dark=False):
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=mobile)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait(self, expression):
        """Until the expression is true; while the page loads it may fail."""
        while not self.value(f"(() => {{ try {{ return {expression} }} catch (e) {{ return false }} }})()"):
            if time.monotonic() > self.deadline:
                raise TimeoutError(expression)
            time.sleep(0.1)

    def faults(self):
        """What the console complains about."""
        self.value("1")  # what has happened until now is here then
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(str(parameters["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(str(parameters["args"]))
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"] + " " + parameters["entry"].get("url", ""))
        return found

    def addresses(self):
        """Of everything that was asked for."""
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def screenshot(self, path):
        import base64
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(20)
        except (RuntimeError, TimeoutError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.write_fd)
        os.close(self.read_fd)
        shutil.rmtree(self.profile, ignore_errors=True)
