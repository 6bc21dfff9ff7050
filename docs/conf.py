"""Sphinx configuration: `make docs` builds the site and treats every warning as an error."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from generate import write_generated_pages  # noqa: E402
from notebooks import write_notebooks  # noqa: E402

from robodyn_ros import __version__  # noqa: E402

project = 'robodyn_ros'
copyright = 'the robodyn_ros authors'
version = release = __version__
extensions = ['myst_parser', 'sphinx.ext.autodoc', 'sphinx.ext.autosummary', 'numpydoc',
              'sphinx_copybutton']
myst_enable_extensions = ['colon_fence', 'deflist']
myst_heading_anchors = 3
exclude_patterns = ['_build']
html_theme = 'furo'
html_title = f'robodyn_ros {__version__}'
html_copy_source = False
html_static_path = ['_static']
html_css_files = ['site.css']
autodoc_typehints = 'none'
autodoc_member_order = 'bysource'
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_prompt_text = '$ '


def setup(app):
    """Write pages and notebooks that are generated before Sphinx reads its sources."""
    app.connect('config-inited', lambda app, config: write_generated_pages(Path(app.srcdir)))
    app.connect('config-inited', lambda app, config: write_notebooks(
        Path(app.srcdir) / 'tutorials/generated'))
