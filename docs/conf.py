"""Sphinx's settings. Nothing is fetched: the build is the same without a network."""

import json
import os
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

from bayesknn import __version__

HERE = Path(__file__).parent
NUMBERS = HERE / "_generated" / "numbers.json"

project = "bayesknn"
author = "The bayesknn developers"
copyright = "the bayesknn developers, BSD-3-Clause"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_generated", "gallery", "measure"]
templates_path = ["_templates"]

# What the pages say in numbers was measured by docs/measure, never typed.
if not NUMBERS.exists():
    subprocess.run([sys.executable, HERE / "measure"], check=True)
myst_substitutions = json.loads(NUMBERS.read_text())
myst_enable_extensions = ["colon_fence", "dollarmath", "substitution"]
myst_heading_anchors = 4
# It is about the whole path: a clone may be in a folder with a space in its name. A test looks at
# the names of the tutorials.
suppress_warnings = ["sphinx_gallery.space_in_filename"]

# Links to other projects' references need their inventories, which an offline build does not have.
if os.environ.get("READTHEDOCS"):
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# The template of a class lists its members.
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"/\d",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    # Tables are shown; that an object lies at some address is not.
    "capture_repr": ("_repr_html_",),
    "default_thumb_file": str(HERE / "images" / "zones.png"),
    "image_srcset": ["2x"],
    "doc_module": ("bayesknn",),
    "backreferences_dir": None,
}

html_theme = "pydata_sphinx_theme"
html_title = "bayesknn"
html_static_path = ["_static"]
html_css_files = ["bayesknn.css"]
html_show_sourcelink = False
# Pages that are long enough for a list of their headings.
PAGES = (
    "install", "start", "command_line", "api", "contributing", "changelog", "architecture",
)  # fmt: skip
GUIDE = (
    "methods", "pool", "intervals", "model", "scaling", "programs", "from_r", "other_packages",
    "clients", "faq", "glossary", "checks", "equations", "paper_in_400_lines",
)  # fmt: skip
html_sidebars = {page: [] for page in ("install", "start", "index", "genindex", "search")}
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": False,
    "pygments_light_style": "tango",
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": {page: ["page-toc"] for page in (*PAGES, *GUIDE)},
}
html_math_renderer = "mathml"


def setup(app):
    """Write formulas as MathML, which browsers draw by themselves: MathJax would be fetched."""
    inline = (lambda translator, node: _write_formula(translator, node, False), None)
    block = (lambda translator, node: _write_formula(translator, node, True), None)
    app.add_html_math_renderer("mathml", inline, block)
    # Before numpydoc reads it.
    app.connect("autodoc-process-docstring", _escape_shape, priority=100)


def _escape_shape(app, what, name, obj, options, lines):
    """Keep the shape ``(n_features_in_,)`` from being read as a link."""
    lines[:] = [line.replace("(n_features_in_,)", r"(n_features_in\_,)") for line in lines]


def _write_formula(translator, node, as_block):
    translator.body.append(tex2mathml(node.astext(), as_block=as_block))
    raise nodes.SkipNode
