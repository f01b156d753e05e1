"""`python docs/thumbnails.py REPORT FOLDER`: the figures of a report, small, for the gallery."""

import sys
from pathlib import Path

from PIL import Image

WIDTH = 900  # of a page's column


def main(report: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for path in sorted(report.glob("*.png")):
        with Image.open(path) as picture:
            size = (WIDTH, round(picture.height * WIDTH / picture.width))
            small = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        small.save(folder / f"{path.stem}.webp", quality=70, method=6)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
