"""A real browser over its DevTools pipe (two file descriptors, no network port, no further package)."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

_LAUNCH = """
import fcntl, os, sys
r, w = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(r, 3), os.dup2(w, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_browser():
    """Path of an installed Chromium or Chrome, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One headless browser; `open` gives pages."""

    def __init__(self, path, profile):
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]
        flags += ["--no-first-run", "--disable-background-networking", "--disable-component-update"]
        command = [path, *flags, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(to_child), str(from_child), *command],
            pass_fds=(to_child, from_child),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)
        self._buffer = b""
        self._count = 0
        self.events = []

    def call(self, method, session=None, **params):
        """Send a command, collect events until its answer comes."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(60)
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method, session):
        """Wait for an event of a page."""
        while not any(e.get("method") == method and e.get("sessionId") == session for e in self.events):
            self.events.append(self._next(60))

    def _next(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser did not answer")
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser ended")
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(line)

    def open(self, url, width=1280, height=900, dark=False, media="screen"):
        """Load a page at a width; everything it logs or requests is kept."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.events = [e for e in self.events if e.get("sessionId") != session]
        page.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired", session)
        return page

    def close(self):
        """End the browser that this object started."""
        try:
            self.call("Browser.close")
        except (RuntimeError, OSError, TimeoutError):
            self._process.kill()
        os.close(self._write)
        os.close(self._read)
        self._process.wait(20)


class Page:
    """One open page."""

    def __init__(self, browser, session, target):
        self._browser, self._session, self._target = browser, session, target

    def call(self, method, **params):
        return self._browser.call(method, self._session, **params)

    def run(self, script):
        """Value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def wait_for(self, method):
        """Wait for an event of this page."""
        self._browser.wait_for(method, self._session)

    def press(self, key):
        """Press and release a key."""
        code = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, "Tab": 9}[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def hover(self, x, y):
        """Move the pointer there."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path):
        """The whole page as PNG."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def _mine(self, method):
        return [
            e["params"]
            for e in self._browser.events
            if e.get("method") == method and e.get("sessionId") == self._session
        ]

    @property
    def complaints(self):
        """Exceptions, console messages and log entries (also violations of the content security policy)."""
        self.run("new Promise(done => setTimeout(done, 50))")
        thrown = [p["exceptionDetails"]["text"] for p in self._mine("Runtime.exceptionThrown")]
        said = [str(p["args"]) for p in self._mine("Runtime.consoleAPICalled")]
        return thrown + said + [p["entry"]["text"] for p in self._mine("Log.entryAdded")]

    @property
    def requests(self):
        """Addresses of everything the page asked for."""
        return [p["request"]["url"] for p in self._mine("Network.requestWillBeSent")]

    def close(self):
        self._browser.call("Target.closeTarget", targetId=self._target)
