"""Draws the monitor's page of the README anew, light and dark, from a run in which one of two sensors is silent.

python -m tests.tools.waiting   (`make waiting`)
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from PIL import Image

import xmlstream as xs
from tests.harness.browser import launched
from tests.harness.pages import ROOT
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.launched import Handle

PICTURE = ROOT / "xmlstream" / "monitor"
HEIGHT = 1330
AT_ONCE, SILENT_FROM, HOURS = 8, 15, 18


def append(path: Path, sensor: str, hour: int) -> None:
    """Adds an hour with a report a minute to a document, and closes it."""
    with path.open("a", encoding="utf-8") as file:
        for minute in range(60):
            values = f"<hour>{hour}</hour><min>{minute}</min><currtmp>{60 + (7 * hour + minute) % 19}</currtmp>"
            file.write(f"<tempdata><sid>{sensor}</sid>{values}</tempdata>")
        file.write(f"<p:tempdata><sid>*</sid><hour>{hour}</hour><min>*</min><currtmp>*</currtmp></p:tempdata>\n")


def slices(url: str) -> int:
    """The number of slices that the run of a monitor has committed."""
    with urlopen(f"{url}healthz", timeout=300) as answer:
        return int(json.load(answer)["slices"])


def main() -> None:
    """Follows the sensors of the first query until one is silent, and takes pictures of the page."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch), launched() as browser:
        live = Path("live")
        live.mkdir()
        documents = {f"S{n}": live / f"sensor{n}.xml" for n in (1, 2)}
        for path in documents.values():
            path.write_text(f'<s xmlns:p="{PUNCT_NS}">', encoding="utf-8")
        spark = xs.open_session("local[2]")
        text = (ROOT / "data" / "warehouse.sql").read_text(encoding="utf-8")
        query = xs.from_sql(spark, text, {"SENSORS": str(live)})
        handle = query.start("out", "state", row_tag="hottest", monitor=True)
        assert isinstance(handle, Handle)
        assert handle.monitor is not None
        for hour in range(HOURS):
            for sensor, path in documents.items():
                if sensor == "S1" or hour < SILENT_FROM:
                    append(path, sensor, hour)
            while hour >= AT_ONCE - 1 and slices(handle.monitor) <= hour - AT_ONCE + 1:
                time.sleep(0.1)
        for scheme in ("light", "dark"):
            page = browser.new_page(color_scheme=scheme, viewport={"width": 1180, "height": HEIGHT})
            page.goto(handle.monitor)
            page.locator("#held").filter(has_text=f"hour {SILENT_FROM} to {HOURS - 1}").wait_for()
            page.locator("#state").filter(has_text="waits for sensor2 since").wait_for()
            page.fill("#value", str(SILENT_FROM + 1))
            page.keyboard.press("Enter")
            page.locator("#answer").filter(has_text="must still send").wait_for()
            picture = PICTURE / f"waiting-{scheme}.png"
            page.screenshot(path=picture)
            Image.open(picture).quantize(256).save(picture, optimize=True)
            page.close()
        handle.stop()


if __name__ == "__main__":
    main()
