"""The site: Sphinx, which scientific Python uses, with MyST-NB, which runs the code on pages and shows what it gives.

`make docs` builds it; warnings are errors, and so is code that fails. Formulas are MathML, which browsers draw
themselves, so that the site needs no network.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import rni  # noqa: E402

# what the pages' code runs in
os.environ |= {"OMP_NUM_THREADS": "1", "MATPLOTLIBRC": str(HERE / "matplotlibrc")}

project = "rni"
author = "the rni developers"
copyright = f"{author}. BSD-3-Clause"
release = rni.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_copybutton",
    "rni_site",
]
exclude_patterns = ["_build"]
suppress_warnings = ["misc.highlighting_failure", "ref.python"]  # several classes have attributes of one name

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
myst_dmath_double_inline = True
nb_execution_in_temp = True  # what pages save is not left beside them
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / "build" / "notebooks")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

autodoc_member_order = "bysource"
napoleon_google_docstring = False  # docstrings have numpydoc sections
napoleon_use_rtype = False
napoleon_use_param = False
napoleon_use_ivar = True
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "imported-members": True}
python_use_unqualified_type_names = True
default_role = "py:obj"

html_theme = "furo"
html_title = "rni"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_theme_options = {"navigation_with_keys": True}
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
copybutton_exclude = ".linenos, .gp, .go"

linkcheck_timeout = 10
linkcheck_workers = 2
