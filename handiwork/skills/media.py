"""A program that decodes a video or a sound with the sandbox's Chromium, which has the codecs of browsers.

``python media.py CHROMIUM frames PATH SECONDS MOST`` prints a picture (JPEG) for every so many seconds of a video, at
most MOST of them, and then evenly spread; ``python media.py CHROMIUM sound PATH SECONDS MOST`` prints the sound in
parts of so many seconds, as WAV with one channel. Each line is {"second": N, "data": BASE64}, the last {"length": N}
with the length of the whole in seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# All runs in a sandbox already; --allow-file-access-from-files lets a page on disk read pixels and files.
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio"),
    *("--remote-debugging-pipe", "--allow-file-access-from-files", "--no-first-run", "--disable-extensions"),
)
_LARGEST_SIDE, _QUALITY = 1024, 0.85  # pixels of a frame; of JPEG
_RATE = 16_000  # samples a second, what models of speech hear
_CHUNK = 1 << 20

_FRAMES = """async (source, side, quality) => {
  const video = document.createElement("video");
  video.muted = true;
  video.src = source;
  await new Promise((loaded, failed) => {
    video.onloadeddata = loaded;
    video.onerror = () => failed(video.error.message);
  });
  if (!video.videoWidth) throw "its pictures have a format that Chromium does not know";
  const scale = Math.min(1, side / Math.max(video.videoWidth, video.videoHeight));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, video.videoWidth * scale);
  canvas.height = Math.max(1, video.videoHeight * scale);
  window.frame = async (second) => {
    const moved = new Promise((done) => { video.onseeked = done; });
    video.currentTime = second;
    await moved;
    canvas.getContext("2d").drawImage(video, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL("image/jpeg", quality).split(",")[1];
  };
  return Number.isFinite(video.duration) ? video.duration : 0;
}"""

_SOUND = """async (source, rate) => {
  const data = await new Promise((read, failed) => {
    const request = new XMLHttpRequest();
    request.open("GET", source);
    request.responseType = "arraybuffer";
    request.onload = () => read(request.response);
    request.onerror = () => failed("it cannot be read");
    request.send();
  });
  const sound = await new OfflineAudioContext(1, 1, rate).decodeAudioData(data);
  const channels = [...Array(sound.numberOfChannels).keys()].map((n) => sound.getChannelData(n));
  window.part = (start, end) => {
    const first = Math.floor(start * rate), last = Math.min(sound.length, Math.floor(end * rate));
    const bytes = new DataView(new ArrayBuffer(44 + 2 * (last - first)));
    const text = (at, letters) => [...letters].forEach((letter, n) => bytes.setUint8(at + n, letter.charCodeAt(0)));
    text(0, "RIFF"); bytes.setUint32(4, bytes.byteLength - 8, true); text(8, "WAVEfmt ");
    bytes.setUint32(16, 16, true); bytes.setUint16(20, 1, true); bytes.setUint16(22, 1, true);
    bytes.setUint32(24, rate, true); bytes.setUint32(28, 2 * rate, true); bytes.setUint16(32, 2, true);
    bytes.setUint16(34, 16, true); text(36, "data"); bytes.setUint32(40, 2 * (last - first), true);
    for (let n = first; n < last; n++) {
      let sample = 0;
      for (const channel of channels) sample += channel[n] / channels.length;
      bytes.setInt16(44 + 2 * (n - first), Math.max(-1, Math.min(1, sample)) * 32767, true);
    }
    const blob = new Blob([bytes.buffer]);
    return new Promise((done) => {
      const reader = new FileReader();
      reader.onload = () => done(reader.result.split(",")[1]);
      reader.readAsDataURL(blob);
    });
  };
  return sound.duration;
}"""


class MediaError(Exception):
    """The file cannot be decoded; the text says why."""


class MediaPage:
    """A page of a Chromium of its own, which ends with the context."""

    def __init__(self, chromium: str, folder: str) -> None:
        """Start Chromium and open the page ``folder``/page.html. Raises MediaError."""
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        redirected = f'exec 3<&{to_read} 4>&{to_write}; exec "$@"'
        self._process = subprocess.Popen(
            [
                "/bin/sh",
                "-c",
                redirected,
                "sh",
                chromium,
                *_OPTIONS,
                f"--user-data-dir={folder}/profile",
                "about:blank",
            ],
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._number, self._session = b"", 0, ""
        Path(folder, "page.html").write_text("<body>")
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._send("Page.enable")
        self._send("Page.navigate", url=Path(folder, "page.html").as_uri())
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def __enter__(self) -> MediaPage:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def run(self, function: str, *arguments: object) -> Any:
        """Return the value of a function of JavaScript. Raises MediaError with what it throws."""
        call = f"({function})({', '.join(map(json.dumps, arguments))})"
        answer = self._send("Runtime.evaluate", expression=call, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            thrown = answer["exceptionDetails"].get("exception", {})
            raise MediaError(str(thrown.get("value") or thrown.get("description") or "it fails").splitlines()[0])
        return answer["result"].get("value")

    def _send(self, method: str, **parameters: object) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while (answer := self._message()).get("id") != self._number:
            pass
        if "result" not in answer:
            raise MediaError(f"Chromium failed: {answer.get('error', {}).get('message', method)}")
        return answer["result"]

    def _message(self) -> dict[str, Any]:
        pieces = [self._buffer]
        while b"\0" not in pieces[-1]:
            piece = os.read(self._from, _CHUNK)
            if not piece:
                raise MediaError("Chromium does not run here, or this file ends it")
            pieces.append(piece)
        message, _, self._buffer = b"".join(pieces).partition(b"\0")
        return json.loads(message)


def print_frames(page: MediaPage, path: str, seconds: float, most: int) -> None:
    """Print pictures of a video. Raises MediaError."""
    length = page.run(_FRAMES, Path(path).as_uri(), _LARGEST_SIDE, _QUALITY)
    count = min(most, max(1, int(length / seconds)))
    for number in range(count):
        # Not the last instant, at which some videos have no picture.
        second = number * seconds if count < most else length * number / count
        _print(second=round(second, 2), data=page.run("(second) => window.frame(second)", second))
    _print(length=length)


def print_sound(page: MediaPage, path: str, seconds: float, most: int) -> None:
    """Print the parts of a sound. Raises MediaError."""
    length = page.run(_SOUND, Path(path).as_uri(), _RATE)
    for number in range(min(most, max(1, -int(-length // seconds)))):
        start = number * seconds
        part = page.run("(start, end) => window.part(start, end)", start, start + seconds)
        _print(second=round(start, 2), data=part)
    _print(length=length)


def _print(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")


def main() -> None:
    """Print what the arguments ask for."""
    chromium, kind, path, seconds, most = sys.argv[-5:]
    decode = {"frames": print_frames, "sound": print_sound}[kind]
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, MediaPage(chromium, folder) as page:
            decode(page, path, float(seconds), int(most))
    except (MediaError, OSError) as error:
        sys.exit(f"{path} cannot be decoded: {error}")


if __name__ == "__main__":
    main()
