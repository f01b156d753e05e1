"""Pages that open from disk and need nothing else."""

from rni.pages.explorer import explore as explore
from rni.pages.explorer import page as page
from rni.pages.snapshots import Snapshots as Snapshots
