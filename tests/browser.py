"""Debian's Chromium, driven over its debugging protocol: pages as they are, with their own security policy."""

import asyncio
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
]


class Browser:
    """`with Browser(folder) as browser: browser.open(page); browser.evaluate("1 + 1")`. `problems`: what pages log."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __enter__(self) -> "Browser":
        assert CHROMIUM is not None
        self.process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={self.folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.loop = asyncio.new_event_loop()
        self.number, self.problems = 0, []
        self.loop.run_until_complete(self._connect())
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    def open(
        self, page: Path, width: int = 1400, height: int = 900, *, dark: bool = False, phone: bool = False
    ) -> None:
        """Show a page in a window of that size, and wait until it is there."""
        size = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.problems.clear()
        self.call("Page.navigate", url=page.as_uri())
        self.wait_for("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, a promise's once it is kept."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 60) -> None:
        """Until a JavaScript condition holds."""
        until = time.monotonic() + seconds
        while not self.evaluate(condition):
            assert time.monotonic() < until, f"not within {seconds} s: {condition}"
            time.sleep(0.05)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.loop.run_until_complete(asyncio.wait_for(self._call(method, parameters), 120))

    async def _connect(self) -> None:
        from tornado.websocket import websocket_connect

        told = self.folder / "DevToolsActivePort"
        until = time.monotonic() + 60
        while not (told.exists() and len(told.read_text(encoding="utf-8").split()) == 2):
            assert time.monotonic() < until, "Chromium did not start"
            assert self.process.poll() is None, "Chromium ended"
            await asyncio.sleep(0.05)
        port, path = told.read_text(encoding="utf-8").split()
        self.session = None
        self.socket = await websocket_connect(f"ws://127.0.0.1:{port}{path}", max_message_size=2**28)
        target = (await self._call("Target.createTarget", {"url": "about:blank"}))["targetId"]
        attached = await self._call("Target.attachToTarget", {"targetId": target, "flatten": True})
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            await self._call(f"{domain}.enable", {})

    async def _call(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        await self.socket.write_message(json.dumps(message | ({"sessionId": self.session} if self.session else {})))
        while True:
            text = await self.socket.read_message()
            assert text is not None, "Chromium is gone"
            answer = json.loads(text)
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.problems.append(answer["params"])
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
