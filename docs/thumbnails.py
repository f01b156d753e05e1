"""`python docs/thumbnails.py REPORT FOLDER`: the figures of a report, small, for the gallery."""

import sys
from pathlib import Path

from PIL import Image

WIDTH = 640  # of a page's column, nearly


def main(report: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for path in sorted(report.glob("*.png")):
        with Image.open(path) as picture:
            size = (WIDTH, round(picture.height * WIDTH / picture.width))
            small = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        small.quantize(64).save(folder / path.name, optimize=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
